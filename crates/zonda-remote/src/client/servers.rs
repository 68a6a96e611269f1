//! The servers that this process speaks to: connections, cookies and the number of requests of each are shared by all of its files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ureq::http::HeaderMap;
use zonda_runtime::beside;
use zonda_runtime::fork::process_id;
use zonda_runtime::lock::{Global, Mutex, Rank};

use super::connect::{Connect, NoConnection, NoResolver};
use super::cookies::Cookies;
use super::gate::Gate;
use super::target::{ServerName, Target};
use super::tls;
use crate::settings::Settings;

/// Servers that are remembered; the one that was not asked for longest goes.
const MOST_SERVERS: usize = 32;
/// A connection that nobody used for this long is not used again.
const MOST_IDLE: Duration = Duration::from_secs(55);
/// Headers of an answer are no longer.
const MOST_HEADERS: usize = 32 << 10;

/// A server, in this process.
pub(crate) struct Live {
    pid: u32,
    server: ServerName,
    pub(crate) settings: Arc<Settings>,
    pub(crate) agent: ureq::Agent,
    pub(crate) gate: Gate,
    cookies: Mutex<Cookies>,
    /// The server asked for a user and a password.
    pub(crate) asks_user: AtomicBool,
}

static SERVERS: Global<Vec<Arc<Live>>> = Global::new(Rank::Servers, Vec::new(), Vec::new);

/// The server with these settings, in this process.
///
/// # Errors
/// What is wrong with a setting, in words.
pub(crate) fn live(server: &ServerName, settings: &Arc<Settings>) -> Result<Arc<Live>, String> {
    let pid = process_id();
    let is_it = |live: &Live| {
        live.pid == pid
            && live.server == *server
            && (Arc::ptr_eq(&live.settings, settings) || live.settings == *settings)
    };
    let find = || {
        let mut servers = SERVERS.lock();
        // Of the process that forked this one: its connections go when the lock is given back.
        let others: Vec<Arc<Live>> = servers.extract_if(.., |live| live.pid != pid).collect();
        let found = servers.iter().position(|live| is_it(live)).map(|at| {
            let live = servers.remove(at);
            servers.push(Arc::clone(&live));
            live
        });
        drop(servers);
        drop(others);
        found
    };
    if let Some(live) = find() {
        return Ok(live);
    }
    let made = Arc::new(Live::new(pid, server, settings)?);
    let mut servers = SERVERS.lock();
    // Somebody may have made one meanwhile: requests of both count together.
    if let Some(live) = servers.iter().find(|live| is_it(live)) {
        return Ok(Arc::clone(live));
    }
    let oldest = (servers.len() >= MOST_SERVERS).then(|| servers.remove(0));
    servers.push(Arc::clone(&made));
    drop(servers);
    drop(oldest);
    Ok(made)
}

/// Has ureq make, with no fork beside it, the values that it makes at the first request of a process: the child of a fork in the middle of that
/// would wait for them for ever.
fn prepare_requests() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if !IS_DONE.load(Ordering::Acquire) {
        let _alone = beside::loading();
        let config = ureq::Agent::config_builder().proxy(None).build();
        let agent = ureq::Agent::with_parts(config, NoConnection, NoResolver);
        // Its headers are made before a connection is asked for, and there is none.
        let _ = agent.get("http://localhost/").call();
        IS_DONE.store(true, Ordering::Release);
    }
}

impl Live {
    fn new(pid: u32, server: &ServerName, settings: &Arc<Settings>) -> Result<Live, String> {
        prepare_requests();
        let connect = Connect {
            server: server.clone(),
            proxy: settings.proxy.clone(),
            tls: server.tls.then(|| tls::client(settings, false)).transpose()?,
            proxy_tls: settings
                .proxy
                .as_ref()
                .filter(|proxy| proxy.server.tls)
                .map(|_| tls::client(settings, true))
                .transpose()?,
            connect_timeout: settings.connect_timeout,
            idle_timeout: settings.idle_timeout,
            buffer_bytes: settings.buffer_bytes,
            user_agent: settings.user_agent.clone(),
        };
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(settings.user_agent.as_str())
            .max_response_header_size(MOST_HEADERS)
            .max_idle_connections(settings.connections)
            .max_idle_connections_per_host(settings.connections)
            .max_idle_age(MOST_IDLE)
            .build();
        let cookies = settings.cookie_jar.as_deref().map(Cookies::of_file).unwrap_or_default();
        Ok(Live {
            pid,
            server: server.clone(),
            settings: Arc::clone(settings),
            agent: ureq::Agent::with_parts(config, connect, NoResolver),
            gate: Gate::new(settings.connections),
            cookies: Mutex::ranked(Rank::Servers, cookies),
            asks_user: AtomicBool::new(!settings.user_waits),
        })
    }

    /// Keeps the cookies of an answer.
    pub(crate) fn keep_cookies(&self, from: &Target, headers: &HeaderMap) {
        let set: Vec<&str> =
            headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok()).collect();
        if !set.is_empty() {
            let mut cookies = self.cookies.lock();
            set.iter().for_each(|header| cookies.set(from, header));
        }
    }

    /// The cookies that go with a request.
    pub(crate) fn cookies_for(&self, target: &Target) -> Option<String> {
        self.cookies.lock().header(target)
    }
}
