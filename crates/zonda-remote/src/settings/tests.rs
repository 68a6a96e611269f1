use super::*;

fn table(text: &str) -> Arc<RcTable> {
    Arc::new(RcTable::of_text(text))
}

fn of(rc: &str, server: &ServerName) -> Result<Settings, String> {
    let rc = table(rc);
    let mut settings = Settings { rc: Arc::clone(&rc), ..Settings::plain(server) };
    let given = &RemoteSettings::default();
    let lookup = Lookup { given, rc: &rc, url: rc_url(server, "/x"), own: true, shared: true };
    settings.take_keys(&lookup)?;
    settings.take_user(&lookup, server);
    Ok(settings)
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
fn what_is_given_comes_first_and_stays_at_its_server() {
    let mut url = RemoteUrl::parse("https://me:old@h/a#http.ssl.validate=0").unwrap();
    let server = ServerName::of(&url);
    let of = |url: &RemoteUrl| Settings::of_url(url, &server, "/a");
    // A URL turns no check off.
    assert!(of(&url).unwrap().verify_peer);
    let pairs = [
        ("HTTP.Credentials.User", "you"),
        ("http.credentials.password", "new"),
        ("http.header.X-Token", "secret"),
        ("http.ssl.validate", "0"),
        ("http.proxy.server", "http://proxy:3128"),
    ];
    url.given = RemoteSettings(pairs.map(|(key, value)| (key.into(), value.into())).into());
    let settings = of(&url).unwrap();
    assert_eq!(settings.user, Some(("you".into(), "new".into())));
    assert_eq!(settings.headers, [("x-token".into(), "secret".into())]);
    assert!(!settings.verify_peer && settings.proxy.is_some());
    assert!(!format!("{settings:?} {url:?}").contains("secret"));
    let other = ServerName::of(&RemoteUrl::parse("https://other/a").unwrap());
    let led = settings.of_redirect(&other, "/a").unwrap();
    assert_eq!((led.user.clone(), led.headers.len(), led.proxy.is_some()), (None, 0, true));
    for (key, value) in
        [("http.header.range", "bytes=0-1"), ("http.header.x", "a\r\nb: c"), ("http.header.", "x")]
    {
        url.given = RemoteSettings(vec![(key.into(), value.into())]);
        assert!(of(&url).is_err(), "{key}");
    }
}
