// sinter/ranks/socket/communicator.hpp: ranks that are processes, of one machine or several, over Unix or TCP
// sockets.
#pragma once

#include <charconv>
#include <chrono>
#include <optional>

#include "sinter/ranks/host_communicator.hpp"
#include "sinter/ranks/socket/transport.hpp"
#if SINTER_WITH_OPENSSL
#include "sinter/ranks/socket/aes_gcm.hpp"
#endif

namespace sinter {

/// Options of socket_communicator. All ranks need the same size, address and secret. The secret, 16 bytes or more,
/// comes from the environment variable SINTER_COMM_SECRET, or from a file that only its owner may read (mode 600); it
/// is no option, as arguments of programs are seen by all users. With integrity what is changed, lost, repeated or
/// swapped on the way is an error, under keys made of the secret; it is on where `address` leads to another machine.
/// Others can read what goes there unless encryption is on, which needs OpenSSL.
struct socket_options {
  int rank = 0, size = 1;
  std::string address;      ///< where rank 0 listens: "unix:/path" or "host:port"
  std::string listen = {};  ///< a host of this machine by which other machines reach this rank; empty: loopback
  std::string secret_file = {};
  std::chrono::duration<double> timeout = std::chrono::seconds(300);
  index_t checked_calls = 100;  ///< so many collectives are compared before they begin; SINTER_COMM_CHECK=1: all
  std::function<void(const std::string&)> log = {};  ///< gets a line for each stranger; empty: standard error
  std::optional<bool> integrity = {};  ///< empty: on, unless `address` is a file or loopback, or encryption is on
  bool encryption = false;             ///< by AES-256-GCM, integrity included; needs SINTER_WITH_OPENSSL

  /// From SINTER_RANK, SINTER_SIZE, SINTER_ADDRESS, SINTER_LISTEN, SINTER_SECRET_FILE, SINTER_INTEGRITY and
  /// SINTER_ENCRYPTION (0 or 1); without any of the first three there is one rank. Errors: value_error for what is no
  /// number, for SINTER_RANK or SINTER_ADDRESS without SINTER_SIZE, and for a SINTER_SIZE above 1 without SINTER_RANK.
  static socket_options from_environment() {
    socket_options o;
    const auto text = [](const char* name, std::string& to) {
      if (const char* const value = std::getenv(name); value != nullptr) to = value;
    };
    const auto number = [&](const char* name, int& to) {
      std::string digits;
      text(name, digits);
      if (digits.empty()) return false;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
      if (error != std::errc{} || end != digits.data() + digits.size())
        detail::refuse<value_error>({name, " is '", digits, "', which is no number"});
      return true;
    };
    const bool has_rank = number("SINTER_RANK", o.rank), has_size = number("SINTER_SIZE", o.size);
    text("SINTER_ADDRESS", o.address);
    if (!has_size && (has_rank || !o.address.empty()))
      detail::refuse<value_error>({"SINTER_SIZE is missing, and ", has_rank ? "SINTER_RANK" : "SINTER_ADDRESS",
                                   " is set; set SINTER_SIZE to the number of ranks"});
    if (!has_rank && o.size > 1)
      detail::refuse<value_error>({"SINTER_RANK is missing, and SINTER_SIZE is ", o.size,
                                   "; set SINTER_RANK to the number of this rank, from 0 to ", o.size - 1});
    text("SINTER_LISTEN", o.listen);
    text("SINTER_SECRET_FILE", o.secret_file);
    const auto is_on = [&](const char* name) -> std::optional<bool> {
      std::string value;
      text(name, value);
      if (value.empty()) return std::nullopt;
      if (value != "0" && value != "1") detail::refuse<value_error>({name, " is '", value, "'; give 0 or 1"});
      return value == "1";
    };
    o.integrity = is_on("SINTER_INTEGRITY");
    o.encryption = is_on("SINTER_ENCRYPTION").value_or(false);
    return o;
  }
};

namespace detail {

inline std::string read_secret(const socket_options& o) {
  std::string secret;
  if (!o.secret_file.empty()) {
    // The rights are those of the file that is read, not of one that takes its place meanwhile.
    const descriptor file = open_file(o.secret_file, O_RDONLY);
    struct stat s;
    if (!file.is_open() || ::fstat(file.get(), &s) != 0)
      refuse<io_error>({"socket_communicator: ", o.secret_file, ": ", system_text(errno)});
    if ((s.st_mode & 077u) != 0)
      refuse<value_error>({"socket_communicator: ", o.secret_file, " can be read by others; chmod 600 it"});
    char bytes[256];
    for (ssize_t n = 1; n > 0;) {
      n = read_some(file, bytes, sizeof bytes);
      if (n < 0) refuse<io_error>({"socket_communicator: ", o.secret_file, ": ", system_text(errno)});
      secret.append(bytes, static_cast<std::size_t>(n));
    }
    secret.resize(std::min(secret.find('\n'), secret.size()));
  } else if (const char* const value = std::getenv("SINTER_COMM_SECRET"); value != nullptr) {
    secret = value;
  }
  if (secret.size() < 16)
    refuse<value_error>({"socket_communicator: the secret has ", secret.size(),
                         " bytes, and needs 16; set SINTER_COMM_SECRET, or secret_file to a file of mode 600"});
  return secret;
}

/// Errors: value_error for options that contradict each other, and for encryption in a program without OpenSSL.
inline protection protection_of(const socket_options& o, bool is_loopback, bool can_encrypt) {
  if (!o.encryption) return o.integrity.value_or(!is_loopback) ? protection::integrity : protection::none;
  if (!o.integrity.value_or(true))
    refuse<value_error>(
        {"socket_communicator: encryption is on and integrity off; encryption has integrity as a part, "
         "so leave integrity out"});
  if (!can_encrypt)
    refuse<value_error>({"socket_communicator: encryption to ", o.address,
                         " needs OpenSSL 3, which this program is compiled without; compile with "
                         "-DSINTER_WITH_OPENSSL=1 and link with -lcrypto (CMake: -DSINTER_WITH_OPENSSL=ON), or use a "
                         "tunnel"});
  return protection::encryption;
}

}  // namespace detail

/// Ranks that are processes, over Unix or TCP sockets: a rank that is killed is noticed at once, and the others go on
/// with an error. Sums are in the order of the ranks. Each rank has three connections to each other one. See the
/// concept `communicator`; docs/communicators.md says how to start the processes.
///
///     socket_communicator ranks(socket_options::from_environment());
///     tensor sum = ranks.all_reduce(gradients).get();
class socket_communicator : public detail::host_communicator<socket_communicator> {
 public:
  /// Returns once all ranks are connected. Errors: value_error for a secret that is missing or too short and for wrong
  /// options; communication_error where a rank does not come in time, or is refused.
  explicit socket_communicator(const socket_options& o)
      : socket_communicator(meet(o), {o.timeout.count(), o.checked_calls},
                            std::make_shared<detail::communication_thread>()) {}

 private:
  using base = detail::host_communicator<socket_communicator>;
  friend base;
  using base::base;

  static std::unique_ptr<detail::transport> meet(const socket_options& o) {
    detail::require_options("socket_communicator", o.timeout.count(), o.checked_calls);
    if (o.size < 1 || o.rank < 0 || o.rank >= o.size)
      detail::refuse<value_error>({"socket_communicator: rank ", o.rank, " of ", o.size,
                                   " ranks; ranks are numbered from 0 to the number of ranks - 1"});
    if (o.size > 1 && o.address.empty())
      detail::refuse<value_error>({"socket_communicator: rank ", o.rank, " of ", o.size,
                                   " has no address; set it (SINTER_ADDRESS) to unix:/path or host:port"});
    std::string secret = o.size > 1 ? detail::read_secret(o) : std::string();
#if SINTER_WITH_OPENSSL
    const detail::make_record_cipher cipher = &detail::aes_gcm::make;
#else
    const detail::make_record_cipher cipher = nullptr;
#endif
    const bool is_loopback = o.size == 1 || detail::parse_address(o.address, 1).is_loopback();
    const detail::protection protect = detail::protection_of(o, is_loopback, SINTER_WITH_OPENSSL != 0);
    try {
      return std::make_unique<detail::socket_transport>(
          detail::socket_place{o.rank, o.size, o.address, o.listen, std::move(secret), o.log, protect, cipher},
          detail::after(detail::communication_clock::now(), o.timeout.count()));
    } catch (const detail::trouble& t) {
      throw communication_error(
          detail::joined({"communicator (sockets), rank ", o.rank, " of ", o.size, ": connecting: ", t.text}).c_str(),
          t.kind, o.rank, t.peer, 0, {});
    }
  }
};

}  // namespace sinter
