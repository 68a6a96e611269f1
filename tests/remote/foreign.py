def all_of(bench):
    pass


def secrets_of(bench):
    pass
