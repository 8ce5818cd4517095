// tests/ranks/socket_communicator_test.cpp: ranks over sockets, strangers at their doors, and each fault of a
// process.
#include <sinter/ranks/socket/communicator.hpp>
#include <sinter/sinter.hpp>

#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using namespace communicator_checks;
using namespace std::chrono_literals;
using failure = communication_failure;

namespace {

/// A folder for the sockets, and the secret in the environment.
struct scene {
  scene() {
    char name[] = "/tmp/sinter_sockets_XXXXXX";
    require(::mkdtemp(name) != nullptr, "a folder for sockets");
    folder = name;
    ::setenv("SINTER_COMM_SECRET", "a secret of the tests", 1);
  }
  ~scene() { std::filesystem::remove_all(folder); }
  socket_options options(int rank, int size) const {
    socket_options o{.rank = rank, .size = size, .address = "unix:" + folder + "/s"};
    o.timeout = 20s;
    return o;
  }
  std::string folder;
};

/// A port that was free a moment ago.
std::string free_address() { return detail::listener("127.0.0.1:0").address(); }

/// f(options of the rank) on a thread for each rank. Errors: the first one that f throws.
void on_threads(int size, const std::function<socket_options(int)>& options,
                const std::function<void(const socket_options&)>& f) {
  std::mutex mutex;
  std::string first;
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        f(options(r));
      } catch (const std::exception& e) {
        const std::lock_guard lock(mutex);
        if (first.empty()) first = "rank " + std::to_string(r) + ": " + e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  if (!first.empty()) throw std::runtime_error(first);
}

std::string hex(const detail::sha256_digest& d) {
  std::string text;
  for (const unsigned b : d) {
    text += "0123456789abcdef"[b / 16];
    text += "0123456789abcdef"[b % 16];
  }
  return text;
}

}  // namespace

TEST_CASE("SHA-256 and HMAC give the numbers of the standards", "[parallel][communicator]") {
  const auto sha = [](const std::string& text) {
    detail::sha256 h;
    for (const char c : text) h.add(&c, 1);
    return hex(h.digest());
  };
  // FIPS 180-4's examples
  CHECK(sha("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // RFC 4231, cases 1, 2, 6 and 7
  CHECK(hex(detail::hmac(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(detail::hmac("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(detail::hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(hex(detail::hmac(std::string(131, '\xaa'),
                         "This is a test using a larger than block-size key and a larger than block-size data. The key "
                         "needs to be hashed before being used by the HMAC algorithm.")) ==
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST_CASE("the reader of frames takes any bytes, and believes no size", "[parallel][communicator]") {
  std::mt19937 random(3);
  const auto draw = [&] { return static_cast<std::byte>(random() & 0xffu); };
  detail::frame f;
  f.call = detail::make_header(detail::operation::all_reduce, element_kind::float64, 12, 0, true, "loss");
  f.bytes = 96;
  const std::vector<std::byte> good = detail::to_wire(f);
  REQUIRE(good.size() == detail::frame_size);
  const auto read = [](const std::vector<std::byte>& bytes) {
    return detail::read_frame(std::span<const std::byte, detail::frame_size>(bytes));
  };
  const auto back = read(good);
  REQUIRE(back.has_value());
  CHECK((back->call == f.call && back->bytes == 96 && detail::text_of(back->call) == detail::text_of(f.call)));
  int accepted = 0;
  for (int i = 0; i < 200000; ++i) {
    std::vector<std::byte> bytes = good;
    if (i % 4 == 0)
      for (std::byte& b : bytes) b = draw();
    else
      for (unsigned k = random() % 4 + 1; k > 0; --k) bytes[4 + random() % (bytes.size() - 4)] = draw();
    const auto g = read(bytes);
    if (!g) continue;
    ++accepted;
    // A lane compares the sizes of data and of waits with what it expects.
    const bool is_bounded =
        g->kind == detail::frame_kind::data || g->kind == detail::frame_kind::wait || g->bytes <= detail::longest_text;
    if (!is_bounded || g->call.name_length > sizeof g->call.name || detail::text_of(g->call).size() > 400)
      FAIL("frame " << i);
  }
  CHECK(accepted > 1000);

  const detail::wire_nonce theirs = detail::draw_nonce(), mine = detail::draw_nonce();
  const auto hello =
      detail::to_wire({7, 4, 2, 1, detail::protection::integrity}, "a secret of the tests", theirs, mine);
  const auto greet = [&](const std::vector<std::byte>& bytes, const char* secret, const detail::wire_nonce& n) {
    return detail::read_hello(std::span<const std::byte, detail::hello_size>(bytes), secret, n);
  };
  CHECK(greet(hello, "a secret of the tests", theirs)->rank == 2);
  CHECK(greet(hello, "a secret of the tests", theirs)->protect == detail::protection::integrity);
  CHECK_FALSE(greet(hello, "another secret, wrong", theirs));
  CHECK_FALSE(greet(hello, "a secret of the tests", mine));  // said again to another one
  for (std::size_t i = 0; i < hello.size(); ++i) {
    auto changed = hello;
    changed[i] ^= std::byte{1};
    if (greet(changed, "a secret of the tests", theirs)) FAIL("a hello with byte " << i << " changed");
  }
}

namespace {

/// A lane that waits for 8 bytes of an all_gather, and the other end of its connection.
struct waiting_lane {
  waiting_lane() {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    other = detail::descriptor(pair[0]);
    lane.fd = detail::descriptor(pair[1]);
    detail::set_up(pair[1], true);
    lane.in.push_back({call, to, nullptr, nullptr});
  }
  /// A frame of that call with so many bytes.
  std::vector<std::byte> frame_with(std::size_t bytes) const {
    detail::frame f;
    f.call = call;
    f.bytes = bytes;
    std::vector<std::byte> all = detail::to_wire(f);
    all.resize(all.size() + bytes);
    return all;
  }
  void take(const std::vector<std::byte>& bytes) {
    REQUIRE(::send(other.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    lane.move_on();
  }
  detail::call_header call = detail::make_header(detail::operation::all_gather, element_kind::uint8, 8, 0, false, "x");
  std::array<std::byte, 8> to{};
  detail::descriptor other;
  detail::socket_lane lane;
};

}  // namespace

TEST_CASE("a lane takes any bytes of a peer as an error", "[parallel][communicator]") {
  std::mt19937 random(5);
  int wrong = 0;
  for (int i = 0; i < 300; ++i) {
    waiting_lane here;
    std::vector<std::byte> bytes = here.frame_with(8);
    if (i > 0) bytes[random() % detail::frame_size] ^= static_cast<std::byte>(1u << random() % 8);
    try {
      here.take(bytes);
      if (i == 0) CHECK(here.lane.is_idle());
    } catch (const detail::trouble&) {
      ++wrong;
    }
  }
  CHECK(wrong > 100);
}

TEST_CASE("a lane for words takes any bytes of what a peer waits for", "[parallel][communicator]") {
  std::mt19937 random(7);
  int read = 0, wrong = 0;
  for (int i = 0; i < 3000; ++i) {
    waiting_lane here;
    detail::rank_wait said(3);
    bool has_said = false;
    here.lane.in.clear();
    here.lane.number = detail::word_lane;
    here.lane.said = &said;
    here.lane.has_said = &has_said;
    detail::frame f;
    f.kind = detail::frame_kind::wait;
    f.call = here.call;
    f.bytes = detail::wait_bytes(3);
    std::vector<std::byte> bytes = detail::to_wire(f);
    detail::rank_wait w(3);
    w.wait_for(f.call, {2});
    w.sent = {4, 5, 6};
    const auto words = detail::to_wire(w);
    REQUIRE(words.size() == f.bytes);
    bytes.insert(bytes.end(), words.begin(), words.end());
    if (i > 0) {
      const std::size_t from = i % 2 == 0 ? 0 : detail::frame_size;
      bytes[from + random() % (bytes.size() - from)] = static_cast<std::byte>(random() & 0xffu);
    }
    try {
      here.take(bytes);
      if (i == 0) CHECK((has_said && said.waits && said.missing == w.missing && said.sent == w.sent));
      if (has_said) {
        ++read;
        std::vector<detail::rank_wait> all(3, said);
        static_cast<void>(detail::wait_graph(all).timeout_of(0, "waited for", {1, 2}));
        static_cast<void>(detail::wait_graph(all).cycle(0, true));
      }
    } catch (const detail::trouble&) {
      ++wrong;
    }
  }
  CHECK(read > 1500);
  CHECK(wrong > 100);
  // Data is for other lanes.
  waiting_lane here;
  here.lane.number = detail::word_lane;
  CHECK_THROWS_AS(here.take(here.frame_with(8)), detail::trouble);
}

TEST_CASE("a lane refuses a frame of another length than its call has", "[parallel][communicator]") {
  waiting_lane here;
  try {
    here.take(here.frame_with(9));
    FAIL("9 bytes for a call of 8");
  } catch (const detail::trouble& t) {
    CHECK(t.kind == failure::mismatch);
  }
}

TEST_CASE("sockets: all calls, over Unix and TCP, with 1 to 4 ranks", "[parallel][communicator]") {
  for (const int R : {1, 2, 4}) {
    INFO(R << " ranks");
    const scene here;
    CHECK_NOTHROW(on_threads(
        R, [&](int r) { return here.options(r, R); },
        [](const socket_options& o) { check_all(socket_communicator(o), true); }));
    const std::string address = free_address();
    CHECK_NOTHROW(on_threads(
        R,
        [&](int r) {
          socket_options o = here.options(r, R);
          o.address = address;
          o.checked_calls = 3;
          return o;
        },
        [](const socket_options& o) { check_all(socket_communicator(o), true); }));
    CHECK(std::filesystem::is_empty(here.folder));
  }
}

TEST_CASE("sockets: sums larger than what is on its way at a time", "[parallel][communicator]") {
  const scene here;
  CHECK_NOTHROW(on_threads(
      3, [&](int r) { return here.options(r, 3); },
      [](const socket_options& o) {
        socket_communicator ranks(o);
        const index_t n = 7000001;
        tensor x = full<float>({n}, 1.f + static_cast<float>(ranks.rank()));
        x.data()[n - 1] = 8;
        tensor sum = ranks.all_reduce(x).get();
        bool right = sum(n - 1) == 24;
        for (index_t i = 0; i < n - 1; ++i) right = right && sum.data()[i] == 6;
        require(right, "sum of 7000001 elements");
      }));
}

TEST_CASE("sockets: all calls and long sums under integrity and encryption", "[parallel][communicator]") {
  std::vector<bool> encrypted{false};
#if SINTER_WITH_OPENSSL
  encrypted.push_back(true);
#endif
  for (const bool is_encrypted : encrypted) {
    const scene here;
    CHECK_NOTHROW(on_threads(
        3,
        [&](int r) {
          socket_options o = here.options(r, 3);
          o.integrity = true;
          o.encryption = is_encrypted;
          return o;
        },
        [](const socket_options& o) {
          socket_communicator ranks(o);
          check_all(ranks, true);
          const index_t n = 3000001;  // records of which the last one is short
          tensor sum = ranks.all_reduce(full<float>({n}, 1.f + static_cast<float>(ranks.rank()))).get();
          bool right = true;
          for (index_t i = 0; i < n; ++i) right = right && sum.data()[i] == 6;
          require(right, "sum of 3000001 elements");
        }));
  }
}

TEST_CASE("sockets: integrity is on where an address leads to another machine", "[parallel][communicator]") {
  using detail::protection;
  socket_options o{.address = "10.0.0.1:4000"};
  bool can_encrypt = true;
  const auto by = [&](const char* address) {
    return detail::protection_of(o, detail::parse_address(address).is_loopback(), can_encrypt);
  };
  CHECK(by("10.0.0.1:4000") == protection::integrity);
  CHECK(by("0.0.0.0:4000") == protection::integrity);
  CHECK(by("127.0.0.1:4000") == protection::none);
  CHECK(by("[::1]:4000") == protection::none);
  CHECK(by("unix:/tmp/s") == protection::none);
  o.integrity = true;
  CHECK(by("unix:/tmp/s") == protection::integrity);
  o.integrity = false;
  CHECK(by("10.0.0.1:4000") == protection::none);
  o.encryption = true;
  CHECK_THROWS_WITH(by("10.0.0.1:4000"), Catch::Contains("encryption is on and integrity off"));
  o.integrity = {};
  CHECK(by("unix:/tmp/s") == protection::encryption);
  can_encrypt = false;
  CHECK_THROWS_WITH(by("10.0.0.1:4000"),
                    "socket_communicator: encryption to 10.0.0.1:4000 needs OpenSSL 3, which this program is compiled "
                    "without; compile with -DSINTER_WITH_OPENSSL=1 and link with -lcrypto (CMake: "
                    "-DSINTER_WITH_OPENSSL=ON), or use a tunnel");
#if !SINTER_WITH_OPENSSL
  const scene here;
  socket_options without = here.options(0, 2);
  without.encryption = true;
  CHECK_THROWS_WITH(socket_communicator(without), Catch::Contains("needs OpenSSL 3, which this program"));
#endif
}

TEST_CASE("sockets: ranks with integrity on and off do not meet, and say why", "[parallel][communicator]") {
  for (const bool of_rank_0 : {false, true}) {
    const scene here;
    std::vector<std::string> texts(2);
    std::vector<failure> kinds(2);
    on_threads(
        2,
        [&](int r) {
          socket_options o = here.options(r, 2);
          o.integrity = (r == 0) == of_rank_0;
          if (r == 0) o.timeout = 2s;
          o.log = [](const std::string&) {};
          return o;
        },
        [&](const socket_options& o) {
          const auto r = static_cast<std::size_t>(o.rank);
          const auto e = error_of([&] { socket_communicator ranks(o); });
          texts[r] = e.what();
          kinds[r] = e.kind();
        });
    const std::string of_0 = of_rank_0 ? ".integrity on" : ".integrity off",
                      of_1 = of_rank_0 ? ".integrity off" : ".integrity on";
    CHECK_THAT(texts[1], Catch::Contains(" has " + of_0 + ", and this rank " + of_1 + "; give all ranks the same"));
    CHECK(kinds[1] == failure::mismatch);
    CHECK_THAT(texts[0],
               Catch::Contains("timeout: rank 1 did not connect; dropped 1 connection: 1 because rank 1 has " + of_1 +
                               ", and rank 0 " + of_0));
  }
}

TEST_CASE("sockets: strangers are dropped and logged, and the ranks meet all the same", "[parallel][communicator]") {
  const scene here;
  const std::string address = free_address();
  std::mutex mutex;
  std::string log;
  const auto options = [&](int r) {
    socket_options o = here.options(r, 2);
    o.address = address;
    o.log = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      log += line + "\n";
    };
    return o;
  };
  const auto knock = [&](std::size_t bytes) {
    const auto a = detail::parse_address(address);
    detail::descriptor fd;
    do fd = detail::descriptor(::socket(AF_INET, SOCK_STREAM, 0));
    while (::connect(fd.get(), a.get(), a.length) != 0);
    const std::vector<char> noise(bytes, 'x');
    if (bytes > 0) static_cast<void>(::send(fd.get(), noise.data(), noise.size(), detail::no_signal));
    return fd;
  };
  CHECK_NOTHROW(on_threads(2, options, [&](const socket_options& o) {
    std::vector<detail::descriptor> strangers;
    if (o.rank == 1) {
      static_cast<void>(knock(3));          // ends at once
      strangers.push_back(knock(0));        // says nothing
      strangers.push_back(knock(1 << 16));  // says too much
      strangers.push_back(knock(detail::hello_size));
      const detail::meeting_rules rules{"not the secret at all", o.log,
                                        detail::after(detail::communication_clock::now(), 9)};
      try {
        detail::connect_to(address, {0, 2, 1, -1}, 0, rules);
        require(false, "a wrong secret is refused");
      } catch (const detail::trouble& t) {
        require(t.text.find("refuses this rank; are the secret") != std::string::npos, t.text);
      }
      const detail::meeting_rules right{"a secret of the tests", o.log, rules.end};
      try {
        detail::connect_to(address, {0, 3, 1, -1}, 0, right);
        require(false, "another number of ranks is refused");
      } catch (const detail::trouble&) {
      }
    }
    socket_communicator ranks(o);
    require(ranks.all_reduce(tensor<float, 1>{2.f}).get()(0) == 4, "sum");
  }));
  CHECK_THAT(log, Catch::Contains("dropped a connection from 127.0.0.1:"));
  CHECK_THAT(log, Catch::Contains("it ended before it proved that it knows the secret"));
  CHECK_THAT(log, Catch::Contains("it does not prove that it knows the secret"));
  CHECK_THAT(log, Catch::Contains("rank 1 of 3, where there are 2 ranks"));
}

TEST_CASE("sockets: who answers in place of rank 0 without the secret is no rank", "[parallel][communicator]") {
  const detail::listener place("127.0.0.1:0");
  std::thread stranger([&] {
    detail::descriptor fd;
    do fd = detail::descriptor(::accept(place.get(), nullptr, nullptr));
    while (fd.get() < 0);
    const detail::meeting_rules rules{{}, {}, detail::after(detail::communication_clock::now(), 9)};
    const detail::wire_nonce nonce{};
    std::array<std::byte, detail::hello_size> hello;
    const detail::sha256_digest answer{};
    rules.send(fd.get(), nonce, "rank 1", 1);
    rules.receive(fd.get(), hello, "rank 1", 1);
    rules.send(fd.get(), std::as_bytes(std::span(answer)), "rank 1", 1);
  });
  const detail::meeting_rules rules{"a secret of the tests", {}, detail::after(detail::communication_clock::now(), 9)};
  std::string text;
  try {
    static_cast<void>(detail::connect_to(place.address(), {0, 2, 1, -1}, 0, rules));
  } catch (const detail::trouble& t) {
    text = t.text;
  }
  stranger.join();
  CHECK_THAT(text, Catch::EndsWith("does not know the secret"));
}

TEST_CASE("sockets: the secret and the options are looked at first", "[parallel][communicator]") {
  const scene here;
  ::unsetenv("SINTER_COMM_SECRET");
  CHECK_THROWS_WITH(socket_communicator(here.options(0, 2)), Catch::Contains("the secret has 0 bytes, and needs 16"));
  const std::string path = here.folder + "/secret";
  std::ofstream(path) << "a secret of the tests\n";
  socket_options o = here.options(0, 2);
  o.secret_file = path;
  o.timeout = 200ms;
  ::chmod(path.c_str(), 0644);
  CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("can be read by others; chmod 600 it"));
  ::chmod(path.c_str(), 0600);
  CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("connecting: timeout: rank 1 did not connect"));
  std::ofstream(path) << "fifteen letters\nand a line that is no part of the secret\n";
  CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("the secret has 15 bytes, and needs 16"));
  std::ofstream(path) << "a secret of the tests\n";
  o.rank = 2;
  CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("rank 2 of 2 ranks"));
  o.rank = 1;
  CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("waited for rank 0 at unix:"));
  o.address = "nonsense";
  CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("'nonsense' is no address; write unix:/path or host:port"));
  o.address = "10.255.255.1:4000";
  CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("rank 1 listens on loopback"));
}

TEST_CASE("sockets: a timeout or a number of compared calls that makes no sense is refused",
          "[parallel][communicator]") {
  const scene here;
  const double nan = std::nan("");
  for (const double seconds : {0., -1., nan})
    for (const int size : {1, 2}) {
      socket_options o = here.options(0, size);
      o.timeout = std::chrono::duration<double>(seconds);
      CHECK_THROWS_WITH(socket_communicator(o), Catch::StartsWith("socket_communicator: timeout is "));
    }
  socket_options o = here.options(0, 1);
  o.checked_calls = -1;
  CHECK_THROWS_WITH(socket_communicator(o), "socket_communicator: checked_calls is -1; give 0 for none, or more");
}

TEST_CASE("sockets: an address without a port or a host is refused at once", "[parallel][communicator]") {
  const scene here;
  for (const int rank : {0, 1}) {
    socket_options o = here.options(rank, 2);
    for (const std::string port : {"", "0", "99999", "65536", "-1", "http", "80 ", "99999999999999999999"}) {
      o.address = "127.0.0.1:" + port;
      CHECK_THROWS_WITH(socket_communicator(o), "socket_communicator: '127.0.0.1:" + port + "' has port '" + port +
                                                    "'; give a number from 1 to 65535");
    }
    o.address = "[::1]:0";
    CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("has port '0'"));
    o.address = "not a host:4000";
    CHECK_THROWS_WITH(socket_communicator(o), Catch::StartsWith("socket_communicator: 'not a host:4000': host 'not a "
                                                                "host' is not found: "));
    o.address = ":4000";
    CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("':4000' is no address; write unix:/path or host:port"));
    o.address = "";
    CHECK_THROWS_WITH(socket_communicator(o), Catch::Contains("has no address; set it (SINTER_ADDRESS) to unix:/path"));
  }
}

TEST_CASE("sockets: an environment that is not complete is refused", "[parallel][communicator]") {
  const auto in = [](std::vector<std::pair<const char*, const char*>> set) {
    for (const auto& [name, value] : set) ::setenv(name, value, 1);
    std::string text;
    socket_options o;
    try {
      o = socket_options::from_environment();
      text = std::to_string(o.rank) + " of " + std::to_string(o.size) + " at " + o.address;
    } catch (const value_error& e) {
      text = e.what();
    }
    for (const auto& [name, value] : set) ::unsetenv(name);
    return text;
  };
  CHECK(in({}) == "0 of 1 at ");
  CHECK(in({{"SINTER_SIZE", "1"}}) == "0 of 1 at ");
  CHECK(in({{"SINTER_SIZE", "4"}, {"SINTER_RANK", "3"}}) == "3 of 4 at ");
  CHECK(in({{"SINTER_SIZE", "4"}, {"SINTER_RANK", "0"}, {"SINTER_ADDRESS", "a:1"}}) == "0 of 4 at a:1");
  CHECK(in({{"SINTER_INTEGRITY", "yes"}}) == "SINTER_INTEGRITY is 'yes'; give 0 or 1");
  ::setenv("SINTER_INTEGRITY", "0", 1);
  ::setenv("SINTER_ENCRYPTION", "1", 1);
  CHECK((socket_options::from_environment().integrity == false && socket_options::from_environment().encryption));
  ::unsetenv("SINTER_INTEGRITY");
  ::unsetenv("SINTER_ENCRYPTION");
  CHECK((!socket_options::from_environment().integrity && !socket_options::from_environment().encryption));
  CHECK(in({{"SINTER_RANK", "1x"}}) == "SINTER_RANK is '1x', which is no number");
  const std::string size = "SINTER_SIZE is missing, and ", how = " is set; set SINTER_SIZE to the number of ranks";
  CHECK(in({{"SINTER_RANK", "0"}}) == size + "SINTER_RANK" + how);
  CHECK(in({{"SINTER_RANK", "1"}, {"SINTER_ADDRESS", "a:1"}}) == size + "SINTER_RANK" + how);
  CHECK(in({{"SINTER_ADDRESS", "a:1"}, {"SINTER_SIZE", ""}}) == size + "SINTER_ADDRESS" + how);
  CHECK(in({{"SINTER_SIZE", "4"}, {"SINTER_ADDRESS", "a:1"}}) ==
        "SINTER_RANK is missing, and SINTER_SIZE is 4; set SINTER_RANK to the number of this rank, from 0 to 3");
}

TEST_CASE("sockets: rank 0 says who did not come and why, and the others give its words", "[parallel][communicator]") {
  const scene here;
  const std::string secret = here.folder + "/secret";
  std::ofstream(secret) << "another secret, wrong";
  ::chmod(secret.c_str(), 0600);
  std::vector<std::string> texts(3);
  std::vector<failure> kinds(3);
  on_threads(
      3,
      [&](int r) {
        socket_options o = here.options(r, 4);
        if (r == 0) o.timeout = 4s;
        if (r == 1) o.secret_file = secret;
        o.log = [](const std::string&) {};
        return o;
      },
      [&](const socket_options& o) {
        const auto r = static_cast<std::size_t>(o.rank);
        const auto e = error_of([&] { socket_communicator ranks(o); });
        texts[r] = e.what();
        kinds[r] = e.kind();
      });
  const std::string cause =
      "timeout: ranks 1, 3 did not connect; dropped 1 connection: 1 because it does not prove that it knows the secret";
  CHECK(texts[0] == "communicator (sockets), rank 0 of 4: connecting: " + cause);
  CHECK_THAT(texts[1], Catch::Contains("refuses this rank; are the secret"));
  CHECK(texts[2] == "communicator (sockets), rank 2 of 4: connecting: rank 0 gave up: " + cause);
  CHECK((kinds[0] == failure::timeout && kinds[2] == failure::aborted));
}

TEST_CASE("sockets: a rank that waits for others longer than its own time does not blame rank 0",
          "[parallel][communicator]") {
  const scene here;
  std::vector<std::string> texts(2);
  on_threads(
      2,
      [&](int r) {
        socket_options o = here.options(r, 3);
        o.timeout = r == 0 ? 6s : 2s;
        return o;
      },
      [&](const socket_options& o) {
        texts[static_cast<std::size_t>(o.rank)] = error_of([&] { socket_communicator ranks(o); }).what();
      });
  CHECK_THAT(texts[0], Catch::Contains("timeout: rank 2 did not connect"));
  CHECK_THAT(texts[1], Catch::Contains("timeout: rank 0 is there, and still waits for other ranks"));
}

// ---- processes: this program again, once for each rank, with the next "test" as its main function
// --------------------

namespace {

/// What the ranks of a scenario do after their first barrier. Each says in a closing line how it ended.
void play(const std::string& scenario, socket_communicator ranks) {
  if (scenario == "run_rank")
    return run_rank(ranks, [](socket_communicator& inside) {
      inside.barrier("begin").get();
      if (inside.rank() == 1) throw std::runtime_error("disk full");
      inside.barrier("end").get();
    });
  const int me = ranks.rank();
  const auto sum = [&](index_t n) { ranks.all_reduce(ones<float>({n}), reduction::sum, "bucket").get(); };
  if (scenario == "calls") return check_all(ranks, true);
  ranks.barrier("begin").get();
  if (me == 1 && scenario == "kill") ::raise(SIGKILL);
  if (me == 1 && scenario == "stop") ::raise(SIGSTOP);
  if (me == 1 && scenario == "leave") return;
  if (me == 1 && scenario == "throw") throw std::runtime_error("disk full");
  if (me == 1 && scenario == "abort") ranks.abort("disk full");
  if (me == 1 && scenario == "order") ranks.broadcast(ones<float>({8}), 0, "weights").get();
  sum(me == 1 && scenario == "size" ? 9 : 8);
  if (scenario == "kill later" && me == 1) ::raise(SIGKILL);
  for (int i = 0; i < 1000; ++i) sum(100000);
}

struct ended {
  std::string text;  ///< its closing line
  int status = 0;
};

/// R processes; what is stopped at their end is killed.
std::vector<ended> run_processes(int R, const std::string& scenario, const std::string& checked = "100") {
  const scene here;
  std::vector<pid_t> children;
  std::vector<int> pipes;
  ::setenv("SINTER_TEST_SCENARIO", scenario.c_str(), 1);
  ::setenv("SINTER_TEST_CHECKED", checked.c_str(), 1);
  ::setenv("SINTER_SIZE", std::to_string(R).c_str(), 1);
  ::setenv("SINTER_ADDRESS", ("unix:" + here.folder + "/s").c_str(), 1);
  for (int r = 0; r < R; ++r) {
    int ends[2];
    require(::pipe(ends) == 0, "a pipe");
    ::setenv("SINTER_RANK", std::to_string(r).c_str(), 1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], 1);
      ::close(ends[0]);
      ::execl("/proc/self/exe", "rank", "a process of the test of sockets", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(ends[1]);
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    children.push_back(child);
    pipes.push_back(ends[0]);
  }
  for (const char* name :
       {"SINTER_TEST_SCENARIO", "SINTER_TEST_CHECKED", "SINTER_SIZE", "SINTER_ADDRESS", "SINTER_RANK"})
    ::unsetenv(name);
  std::vector<ended> all(static_cast<std::size_t>(R));
  const auto wait_for = [&](std::size_t r) {
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(pipes[r], buffer, sizeof buffer)) > 0;)
      all[r].text.append(buffer, static_cast<std::size_t>(n));
    ::close(pipes[r]);
    ::waitpid(children[r], &all[r].status, 0);
    const std::size_t begin = all[r].text.find("closing: "), end = all[r].text.find('\n', begin);
    all[r].text = begin == std::string::npos ? "" : all[r].text.substr(begin, end - begin);
  };
  for (std::size_t r = 0; r < all.size(); ++r)
    if (r != 1 || scenario != "stop") wait_for(r);
  if (scenario == "stop") {
    ::kill(children[1], SIGKILL);
    wait_for(1);
  }
  return all;
}

}  // namespace

TEST_CASE("a process of the test of sockets", "[.]") {
  const char* const scenario = std::getenv("SINTER_TEST_SCENARIO");
  REQUIRE(scenario != nullptr);
  socket_options o = socket_options::from_environment();
  o.timeout = std::string(scenario) == "stop" ? 1s : 60s;
  o.checked_calls = std::atoi(std::getenv("SINTER_TEST_CHECKED"));
  std::string line = "fine";
  if (std::string(scenario) == "uncaught" && o.rank == 1) {  // nothing is destroyed
    socket_communicator ranks(o);
    try {
      run_rank(ranks, [](socket_communicator& inside) {
        inside.barrier("begin").get();
        throw std::runtime_error("disk full");
      });
    } catch (...) {
      ::_exit(1);
    }
  }
  try {
    play(scenario, socket_communicator(o));
  } catch (const communication_error& e) {
    line = "kind " + std::to_string(static_cast<int>(e.kind())) + " peer " + std::to_string(e.peer()) + " " + e.what();
  } catch (const std::exception& e) {
    line = e.what();
  }
  std::printf("closing: %s\n", line.c_str());
}

TEST_CASE("sockets: all calls between processes", "[parallel][communicator]") {
  for (const ended& e : run_processes(3, "calls")) CHECK(e.text == "closing: fine");
}

TEST_CASE("sockets: every fault of a process reaches every survivor", "[parallel][communicator]") {
  struct expectation {
    const char *scenario, *checked;
    failure kind;
    const char* text;
  };
  const std::string mismatch =
      "mismatch: rank 0 calls all_reduce of 8 float 'bucket', its collective number 2, and rank 1 calls ";
  const std::string sizes = mismatch + "all_reduce of 9 float 'bucket'",
                    orders = mismatch + "broadcast of 8 float 'weights' from rank 0";
  // Survivors tell each other, so that one may hear of it in the call before; a timeout and a mismatch name the call.
  const expectation all[] = {
      {"kill", "100", failure::peer_lost, ": rank 1 was lost: its connection has ended"},
      {"kill", "0", failure::peer_lost, "rank 1 was lost: its connection has ended"},
      {"kill later", "1", failure::peer_lost, ": rank 1 was lost: its connection has ended"},
      {"stop", "100", failure::timeout, "all_reduce number 2 'bucket': timeout: waited for rank 1 in vain"},
      {"leave", "100", failure::peer_lost, ": rank 1 has ended"},
      {"throw", "100", failure::aborted, "aborted by rank 1: an exception left the block of its communicator"},
      {"abort", "0", failure::aborted, ": aborted by rank 1: disk full"},
      {"run_rank", "100", failure::aborted, ": aborted by rank 1: disk full"},
      {"uncaught", "100", failure::aborted, ": aborted by rank 1: disk full"},
      {"order", "100", failure::mismatch, orders.c_str()},
      {"size", "100", failure::mismatch, sizes.c_str()},
      {"order", "1", failure::mismatch, "rank 1 calls broadcast of 8 float 'weights' from rank 0"},
      {"size", "1", failure::mismatch, "rank 1 calls all_reduce of 9 float 'bucket'"}};
  for (const expectation& e : all) {
    INFO(e.scenario << ", " << e.checked << " compared");
    const std::vector<ended> ranks = run_processes(4, e.scenario, e.checked);
    for (const std::size_t r : {0u, 2u, 3u}) {
      INFO("rank " << r);
      CHECK_THAT(ranks[r].text, Catch::Contains("kind " + std::to_string(static_cast<int>(e.kind)) + " "));
      CHECK_THAT(ranks[r].text, Catch::Contains(e.text));
      if (e.kind != failure::mismatch || std::string(e.checked) == "100")
        CHECK_THAT(ranks[r].text, Catch::Contains("peer 1 "));
    }
    const bool was_killed = WIFSIGNALED(ranks[1].status) && WTERMSIG(ranks[1].status) == SIGKILL;
    CHECK(was_killed == (std::string(e.scenario).starts_with("kill") || std::string(e.scenario) == "stop"));
    if (std::string(e.scenario) == "throw" || std::string(e.scenario) == "run_rank")
      CHECK(ranks[1].text == "closing: disk full");
  }
}
