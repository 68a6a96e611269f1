use super::*;

fn table(text: &str) -> Arc<RcTable> {
    Arc::new(RcTable::of_text(text))
}

fn of(rc: &str, server: &ServerName) -> Result<Settings, String> {
    with(rc, &server.shown(), &[])
}

/// What is set for a URL, with keys that somebody gave besides.
fn with(rc: &str, url: &str, given: &[(&str, &str)]) -> Result<Settings, String> {
    let mut url = RemoteUrl::parse(&format!("{url}/x")).unwrap();
    url.given.extend(given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let server = ServerName::of(&url);
    Settings { rc: table(rc), ..Settings::plain(&server) }.with_url(&url, &server, "/x")
}

fn https(host: &str) -> ServerName {
    ServerName::new(true, host, None)
}

#[test]
fn keys_have_the_meaning_that_they_have_in_netcdf_c() {
    let rc = "HTTP.TIMEOUT=7\nHTTP.CONNECTTIMEOUT=3\nHTTP.USERAGENT=me/1\nHTTP.SSL.CAINFO=/ca\nHTTP.SSL.VERIFYHOST=0\nHTTP.READ.BUFFERSIZE=max\n[https://a]HTTP.SSL.VALIDATE=1\n[https://a]HTTP.CREDENTIALS.USERPASSWORD=u:p:q\nHTTP.CREDENTIALS.USER=all\nHTTP.CREDENTIALS.PASSWORD=pw\n";
    let settings = of(rc, &https("a")).unwrap();
    assert_eq!(settings.user, Some(("u".into(), "p:q".into())));
    assert_eq!(
        (settings.total(1 << 30), settings.connect_timeout),
        (Duration::from_secs(7), Duration::from_secs(3))
    );
    assert_eq!(
        (settings.verify_peer, settings.verify_host, settings.user_agent.as_str()),
        (true, false, "me/1")
    );
    assert_eq!(settings.ca_info, Some("/ca".into()));
    assert_eq!(of(rc, &https("b")).unwrap().user, Some(("all".into(), "pw".into())));
    assert!(!of("HTTP.SSL.VALIDATE=0", &https("b")).unwrap().verify_peer);
    assert_eq!(of("HTTP.TIMEOUT=0.5", &https("b")).unwrap().total(1), Duration::from_secs(1));
    assert!(of("HTTP.TIMEOUT=-1", &https("b")).is_err());
    assert!(of("", &https("b")).unwrap().verify_peer);
    assert!(
        of("HTTP.TIMEOUT=secret", &https("b"))
            .is_err_and(|what| what.contains("HTTP.TIMEOUT") && !what.contains("secret"))
    );
}

#[test]
fn what_is_set_for_all_does_not_follow_a_redirect_to_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let netrc = folder.path().join("netrc");
    std::fs::write(&netrc, "machine login.org login n password np").unwrap();
    let rc = "HTTP.CREDENTIALS.USERPASSWORD=u:p\nHTTP.SSL.CERTIFICATE=/c\n[https://own.org]HTTP.CREDENTIALS.USERPASSWORD=o:op\n";
    let settings = Settings { netrc: Some(netrc), ..of(rc, &https("a")).unwrap() };
    assert_eq!((settings.user.is_some(), settings.certificate.is_some()), (true, true));
    let user = |server: &ServerName| {
        settings.of_redirect(server, "/x").unwrap().user.map(|(user, _)| user)
    };
    assert_eq!(user(&https("b")), None);
    assert_eq!(user(&https("own.org")).as_deref(), Some("o"));
    assert_eq!(user(&https("login.org")).as_deref(), Some("n"));
    assert_eq!(user(&ServerName::new(false, "login.org", None)), None);
    assert_eq!(settings.of_redirect(&https("b"), "/x").unwrap().certificate, None);
}

#[test]
fn users_and_passwords_are_encoded() {
    assert_eq!(basic("", ""), "Basic Og==");
    assert_eq!(basic("a", ""), "Basic YTo=");
    assert_eq!(basic("me", "p"), "Basic bWU6cA==");
    assert_eq!(basic("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

#[test]
fn what_is_given_comes_before_all_else_and_a_url_gives_no_keys_of_http() {
    let rc = "HTTP.CREDENTIALS.USERPASSWORD=rc:1\n[https://a]HTTP.TIMEOUT=5\n";
    let given = [
        ("http.credentials.user", "me"),
        ("http.credentials.password", "pw"),
        ("http.timeout", "7"),
    ];
    let settings = with(rc, "https://url:2@a", &given).unwrap();
    assert_eq!(settings.user, Some(("me".into(), "pw".into())));
    assert_eq!(settings.total(1), Duration::from_secs(7));
    assert_eq!(with(rc, "https://url:2@a", &[]).unwrap().user, Some(("url".into(), "2".into())));
    let headers =
        with(rc, "https://a", &[("http.header.X-Token", "t"), ("http.header.x-token", "u")])
            .unwrap();
    assert_eq!(headers.headers, [("x-token".into(), "u".into())]);
    assert_eq!(headers.of_redirect(&https("b"), "/x").unwrap().headers, []);
    for (key, value) in [
        ("http.header.host", "x"),
        ("http.header.Range", "x"),
        ("http.header.a b", "x"),
        ("http.header.a", "x\r\ny"),
    ] {
        assert!(with("", "https://a", &[(key, value)]).is_err(), "{key}");
    }
    // A proxy that is given is that of redirects, too.
    let proxy = with("", "https://a", &[("http.proxy.server", "http://p:1")]).unwrap();
    assert!(proxy.of_redirect(&https("b"), "/x").unwrap().proxy.is_some());
    let url = RemoteUrl::parse(
        "[http.ssl.validate=0]https://a/x#mode=bytes&HTTP.NETRC=/etc/x&aws.profile=me",
    )
    .unwrap();
    assert_eq!(
        url.settings,
        [("mode".into(), "bytes".into()), ("aws.profile".into(), "me".into())]
    );
}
