// sinter/ranks/socket/mesh.hpp: connections between processes, each of which has proved that it knows the secret.
#pragma once

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "sinter/io/descriptor.hpp"
#include "sinter/ranks/socket/wire.hpp"

namespace sinter::detail {

[[noreturn]] SINTER_COLD inline void throw_system(const std::string& doing) {
  throw trouble{communication_failure::backend, -1, doing + ": " + system_text(errno)};
}

/// "unix:/path" or "host:port", as the system knows it.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  bool is_unix() const { return storage.ss_family == AF_UNIX; }
  bool is_loopback() const {
    if (storage.ss_family == AF_INET)
      return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
    if (storage.ss_family == AF_INET6)
      return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr) != 0;
    return is_unix();
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Port 0 is any free one, which only serves to listen. Errors: value_error for what is no address, and for a host that
/// has none.
inline socket_address parse_address(const std::string& text, int lowest_port = 0) {
  socket_address a;
  if (text.starts_with("unix:")) {
    auto& to = *reinterpret_cast<sockaddr_un*>(&a.storage);
    const std::string path = text.substr(5);
    if (path.empty() || path.size() >= sizeof to.sun_path)
      refuse<value_error>({"socket_communicator: '", text, "': a path has 1 to ", sizeof to.sun_path - 1, " bytes"});
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
    a.length = static_cast<socklen_t>(sizeof to);
    return a;
  }
  const std::size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty())
    refuse<value_error>({"socket_communicator: '", text, "' is no address; write unix:/path or host:port"});
  const std::string digits = text.substr(colon + 1);
  int port = -1;
  const auto [last, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (wrong != std::errc{} || last != digits.data() + digits.size() || port < lowest_port || port > 65535)
    refuse<value_error>({"socket_communicator: '", text, "' has port '", digits, "'; give a number from 1 to 65535"});
  addrinfo want{}, *found = nullptr;
  want.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &want, &found);
  if (code != 0 || found == nullptr)
    refuse<value_error>({"socket_communicator: '", text, "': host '", host, "' is not found: ",
                         code == EAI_SYSTEM ? system_text(errno) : std::string(::gai_strerror(code))});
  std::memcpy(&a.storage, found->ai_addr, found->ai_addrlen);
  a.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return a;
}

inline std::string text_of(const socket_address& a) {
  if (a.is_unix()) return std::string("unix:") + reinterpret_cast<const sockaddr_un*>(&a.storage)->sun_path;
  char host[256] = {}, port[32] = {};
  ::getnameinfo(a.get(), a.length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  return (a.storage.ss_family == AF_INET6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" + port;
}

inline void set_up(int fd, bool is_unix) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  constexpr int no_delay = 1;  // TCP_NODELAY; <netinet/tcp.h> is not included, as its names are macros elsewhere
  if (!is_unix) ::setsockopt(fd, IPPROTO_TCP, no_delay, &on, sizeof on);
#if defined(SO_NOSIGPIPE)
  ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

#if defined(MSG_NOSIGNAL)
inline constexpr int no_signal = MSG_NOSIGNAL;
#else
inline constexpr int no_signal = 0;
#endif

/// Where this process can be reached. Its file, if it has one, only serves its user, and goes with it.
class listener {
 public:
  explicit listener(const std::string& at) {
    socket_address a = parse_address(at);
    if (a.is_unix()) remove_left_over(a);
    fd_ = descriptor(::socket(a.storage.ss_family, SOCK_STREAM, 0));
    if (fd_.get() < 0) throw_system("socket");
    const int on = 1;
    if (!a.is_unix()) ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd_.get(), a.get(), a.length) != 0) throw_system("listening at " + at);
    if (a.is_unix()) {
      file_ = at.substr(5);
      ::chmod(file_.c_str(), 0600);
    }
    if (::listen(fd_.get(), 128) != 0) throw_system("listening at " + at);
    set_up(fd_.get(), true);
    a.length = sizeof a.storage;
    ::getsockname(fd_.get(), a.get(), &a.length);
    address_ = a.is_unix() ? at : text_of(a);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    if (!file_.empty()) ::unlink(file_.c_str());
  }
  int get() const { return fd_.get(); }
  const std::string& address() const { return address_; }

 private:
  /// The file of a process that was killed; one at which somebody listens stays, and is an error of bind().
  static void remove_left_over(const socket_address& a) {
    const char* const path = reinterpret_cast<const sockaddr_un*>(&a.storage)->sun_path;
    struct stat s;
    if (::lstat(path, &s) != 0 || !S_ISSOCK(s.st_mode)) return;
    const descriptor probe(::socket(AF_UNIX, SOCK_STREAM, 0));
    if (::connect(probe.get(), a.get(), a.length) != 0 && errno == ECONNREFUSED) ::unlink(path);
  }
  descriptor fd_;
  std::string address_, file_;
};

inline wire_nonce draw_nonce() {
  std::random_device source;
  wire_nonce n;
  for (std::byte& b : n) b = static_cast<std::byte>(source() & 0xffu);
  return n;
}

using log_function = std::function<void(const std::string&)>;

/// A connection whose two sides have proved that they know the secret.
struct connection {
  descriptor fd;
  connection_seals seals;
};

/// How the processes of a communicator find and know each other.
struct meeting_rules {
  std::string secret;
  log_function log;
  communication_clock::time_point end;  ///< for all to be there
  protection protect = protection::none;
  int rank = 0;                             ///< of this process
  make_record_cipher encryption = nullptr;  ///< null in a program that has none
  std::function<bool()> is_interrupted = [] { return false; };

  void wait(int fd, short events, const std::string& for_whom, int peer) const {
    while (true) {
      pollfd p{fd, events, 0};
      if (::poll(&p, 1, 50) > 0) return;
      check_time(for_whom, peer);
    }
  }
  void check_time(const std::string& for_whom, int peer) const {
    if (is_interrupted()) throw trouble{communication_failure::aborted, -1, "interrupted"};
    if (communication_clock::now() >= end)
      throw trouble{communication_failure::timeout, peer, "timeout: waited for " + for_whom + " in vain"};
  }
  /// Errors: a trouble where the connection ends, or the time.
  void send(int fd, std::span<const std::byte> bytes, const std::string& to, int peer) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd, bytes.data(), bytes.size(), no_signal);
      if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
      else if (errno == EAGAIN || errno == EINTR) wait(fd, POLLOUT, to, peer);
      else throw trouble{communication_failure::peer_lost, peer, to + " was lost: its connection has ended"};
    }
  }
  void receive(int fd, std::span<std::byte> bytes, const std::string& from, int peer) const {
    while (!bytes.empty()) {
      const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
      if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
      else if (n < 0 && (errno == EAGAIN || errno == EINTR)) wait(fd, POLLIN, from, peer);
      else throw trouble{communication_failure::peer_lost, peer, from + " was lost: its connection has ended"};
    }
  }
  /// The same under the seals of the connection.
  void send(connection& c, std::span<const std::byte> bytes, const std::string& to, int peer) const {
    if (c.seals.out.is_on()) send(c.fd.get(), sealed_records(c.seals.out, bytes), to, peer);
    else send(c.fd.get(), bytes, to, peer);
  }
  void receive(connection& c, std::span<std::byte> bytes, const std::string& from, int peer) const {
    if (!c.seals.in.is_on()) return receive(c.fd.get(), bytes, from, peer);
    std::vector<std::byte> sealed;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(record_size, bytes.size()))) {
      const std::size_t n = std::min(record_size, bytes.size());
      sealed.resize(n + tag_size);
      receive(c.fd.get(), sealed, from, peer);
      if (!c.seals.in.open(sealed, bytes.data())) throw altered(peer);
    }
  }
};

/// Connects to the rank that listens at `address`, which may come later.
inline connection connect_to(const std::string& address, hello who, int peer, const meeting_rules& rules) {
  who.protect = rules.protect;
  const socket_address a = parse_address(address);
  const std::string them = joined({"rank ", peer, " at ", address});
  descriptor fd;
  while (true) {
    fd = descriptor(::socket(a.storage.ss_family, SOCK_STREAM, 0));
    if (fd.get() < 0) throw_system("socket");
    set_up(fd.get(), a.is_unix());
    int code = ::connect(fd.get(), a.get(), a.length) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
      rules.wait(fd.get(), POLLOUT, them, peer);
      socklen_t size = sizeof code;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    }
    if (code == 0) break;
    rules.check_time(them + " (" + system_text(code) + ")", peer);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  wire_nonce theirs;
  rules.receive(fd.get(), theirs, them, peer);
  const std::vector<std::byte> bytes = to_wire(who, rules.secret, theirs, draw_nonce());
  rules.send(fd.get(), bytes, them, peer);
  sha256_digest answer;
  try {
    rules.receive(fd.get(), std::as_writable_bytes(std::span(answer)), them, peer);
  } catch (const trouble& t) {
    if (t.kind != communication_failure::peer_lost) throw;
    throw trouble{
        communication_failure::backend, peer,
        them + " refuses this rank; are the secret and the number of ranks the same, and the rank not taken?"};
  }
  for (const protection p : {protection::none, protection::integrity, protection::encryption}) {
    if (!are_equal_digests(answer, answer_of(rules.secret, bytes, p))) continue;
    if (p != rules.protect)
      throw trouble{communication_failure::mismatch, peer,
                    joined({them, " has ", text_of(p), ", and this rank ", text_of(rules.protect),
                            "; give all ranks the same options, and addresses of which all or none are loopback"})};
    return {std::move(fd), {p, rules.secret, theirs, bytes, false, rules.encryption}};
  }
  throw trouble{communication_failure::backend, peer, them + " does not know the secret"};
}

/// Connections that accept_ranks has dropped, by the reason.
class dropped_connections {
 public:
  void add(const std::string& why) {
    ++number_;
    if (by_reason_.contains(why) || by_reason_.size() < 4) ++by_reason_[why];
  }
  /// "; dropped 3 connections: 2 because ..., 1 because ...".
  std::string text() const {
    std::string all;
    for (const auto& [why, n] : by_reason_) all += joined({all.empty() ? ": " : ", ", n, " because ", why});
    if (number_ == 0) return all;
    return joined({"; dropped ", number_, number_ == 1 ? " connection" : " connections"}) + all;
  }

 private:
  index_t number_ = 0;
  std::map<std::string, index_t> by_reason_;
};

/// Puts the connections of the first `count` ranks to which there is no objection, which is then an empty text, into
/// `in`. All others are dropped and logged. Errors: missing() where the time is over, with what was dropped.
inline void accept_ranks(const listener& at, std::size_t count,
                         const std::function<std::string(const hello&)>& objection,
                         const std::function<trouble()>& missing, const meeting_rules& rules,
                         std::vector<std::pair<hello, connection>>& in) {
  struct candidate {
    descriptor fd;
    wire_nonce nonce = draw_nonce();
    std::array<std::byte, hello_size> bytes;
    std::size_t got = 0;
    communication_clock::time_point end = after(communication_clock::now(), 5);
    std::string name;
  };
  constexpr std::size_t most_candidates = 64;
  std::list<candidate> candidates;
  dropped_connections dropped;
  const auto drop = [&](auto one, const std::string& why) {
    dropped.add(why);
    rules.log("dropped a connection from " + one->name + ": " + why);
    return candidates.erase(one);
  };
  while (in.size() < count) {
    std::vector<pollfd> polls{{at.get(), POLLIN, 0}};
    for (const candidate& c : candidates) polls.push_back({c.fd.get(), POLLIN, 0});
    ::poll(polls.data(), static_cast<nfds_t>(polls.size()), 50);
    if (rules.is_interrupted()) throw trouble{communication_failure::aborted, -1, "interrupted"};
    if (communication_clock::now() >= rules.end) {
      trouble why = missing();
      why.text += dropped.text();
      throw why;
    }
    for (auto c = candidates.begin(); c != candidates.end();) {
      const ssize_t n = ::recv(c->fd.get(), c->bytes.data() + c->got, hello_size - c->got, 0);
      if (n > 0) c->got += static_cast<std::size_t>(n);
      const bool has_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
      if (has_ended) c = drop(c, "it ended before it proved that it knows the secret");
      else if (c->got < hello_size && communication_clock::now() >= c->end) c = drop(c, "it says nothing");
      else if (c->got < hello_size) ++c;
      else {
        const std::optional<hello> who = read_hello(c->bytes, rules.secret, c->nonce);
        const bool is_other = who && who->protect != rules.protect;
        const std::string why = !who       ? std::string("it does not prove that it knows the secret")
                                : is_other ? joined({"rank ", who->rank, " has ", text_of(who->protect), ", and rank ",
                                                     rules.rank, " ", text_of(rules.protect)})
                                           : objection(*who);
        const sha256_digest answer = answer_of(rules.secret, c->bytes, rules.protect);
        if (is_other) static_cast<void>(::send(c->fd.get(), answer.data(), answer.size(), no_signal));
        if (!why.empty()) {
          c = drop(c, why);
          continue;
        }
        rules.send(c->fd.get(), std::as_bytes(std::span(answer)), joined({"rank ", who->rank}), who->rank);
        in.emplace_back(*who, connection{std::move(c->fd),
                                         {rules.protect, rules.secret, c->nonce, c->bytes, true, rules.encryption}});
        c = candidates.erase(c);
      }
    }
    socket_address from;
    from.length = sizeof from.storage;
    descriptor fd(::accept(at.get(), from.get(), &from.length));
    if (fd.get() < 0) continue;
    set_up(fd.get(), from.is_unix());
    if (candidates.size() == most_candidates) drop(candidates.begin(), "too many others came after it");
    candidate& c = candidates.emplace_back();
    c.fd = std::move(fd);
    c.name = from.storage.ss_family == AF_UNIX ? "this machine" : text_of(from);
    static_cast<void>(::send(c.fd.get(), c.nonce.data(), c.nonce.size(), no_signal));
  }
}

}  // namespace sinter::detail
