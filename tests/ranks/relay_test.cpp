// tests/ranks/relay_test.cpp: what lies between two ranks changes, loses, repeats and swaps what they send.
#include <sinter/ranks/socket/communicator.hpp>
#include <sinter/sinter.hpp>

#include <atomic>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using namespace communicator_checks;
using namespace std::chrono_literals;
using detail::protection;

namespace {

constexpr const char* secret = "a secret of the tests";

// ---- numbers of the standards
// ----------------------------------------------------------------------------------------

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned>(b) / 16];
    text += "0123456789abcdef"[static_cast<unsigned>(b) % 16];
  }
  return text;
}

}  // namespace

TEST_CASE("SipHash-2-4 with 128 bits gives the numbers of its reference code", "[parallel][communicator]") {
  // vectors_sip128 of github.com/veorq/SipHash: key 00 01 ... 0f, of the first n of the bytes 00 01 02 ...
  const char* const expected[] = {"a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45",
                                  "8177228da4a45dc7fca38bdef60affe4", "9c70b60c5267a94e5f33b6b02985ed51",
                                  "f88164c12d9c8faf7d0f6e7c7bcd5579"};
  const detail::siphash_key key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  std::vector<std::byte> bytes;
  for (int i = 0; i < 64; ++i) bytes.push_back(static_cast<std::byte>(i));
  const auto tag = [&](std::size_t n) { return hex(detail::siphash(key).digest(std::span(bytes).first(n))); };
  for (std::size_t n = 0; n < std::size(expected); ++n) CHECK(tag(n) == expected[n]);
  CHECK(tag(15) == "5493e99933b0a8117e08ec0f97cfc3d9");
  CHECK(tag(16) == "6ee2a4ca67b054bbfd3315bf85230577");
  CHECK(tag(63) == "5150d1772f50834a503e069a973fbd7c");
}

#if SINTER_WITH_OPENSSL
TEST_CASE("AES-256-GCM gives the numbers of its authors", "[parallel][communicator]") {
  // McGrew and Viega, "The Galois/Counter Mode of operation", 2004, test cases 13 and 14: key and nonce are zero.
  std::array<std::uint8_t, 32> key{};
  detail::aes_gcm one(key, true), back(key, false);
  CHECK(hex(one.encrypt(0, {}, nullptr)) == "530f8afbc74536b9a963b4f1c4cb738b");
  const std::array<std::byte, 16> zero{};
  std::array<std::byte, 16> there{}, again{};
  const auto tag = one.encrypt(0, zero, there.data());
  CHECK(hex(there) == "cea7403d4d606b6e074ec5d3baf39d18");
  CHECK(hex(tag) == "d0d1c8a799996bf0265b98b5d48ab919");
  CHECK(back.decrypt(0, there, tag, again.data()));
  CHECK(again == zero);
  CHECK_FALSE(back.decrypt(1, there, tag, again.data()));
}
#endif

// ---- frames of one lane
// ----------------------------------------------------------------------------------------------

namespace {

/// All that this program can do.
std::vector<protection> protections() {
  std::vector<protection> all{protection::integrity};
#if SINTER_WITH_OPENSSL
  all.push_back(protection::encryption);
#endif
  return all;
}

detail::connection_seals seals_of(protection by, bool accepts) {
  const detail::wire_nonce nonce{};
#if SINTER_WITH_OPENSSL
  return {by, secret, nonce, std::array<std::byte, 3>{}, accepts, &detail::aes_gcm::make};
#else
  return {by, secret, nonce, std::array<std::byte, 3>{}, accepts, nullptr};
#endif
}
std::pair<detail::descriptor, detail::descriptor> a_connection() {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  for (const int fd : pair) detail::set_up(fd, true);
  return {detail::descriptor(pair[0]), detail::descriptor(pair[1])};
}
detail::call_header call_number(std::int64_t number) {
  auto h = detail::make_header(detail::operation::all_gather, element_kind::uint8, 8, 0, false, "x");
  h.number = number;
  return h;
}
constexpr std::size_t frames = 4, bytes_in_frame = 8;

/// What a lane sends of frames with the bytes 1, 2, ...; each of 8 bytes.
std::vector<std::vector<std::byte>> sent_frames(protection by) {
  std::vector<std::vector<std::byte>> all;
  auto [there, here] = a_connection();
  detail::socket_lane lane;
  lane.fd = std::move(here);
  lane.seals = seals_of(by, true);
  for (std::size_t i = 0; i < frames; ++i) {
    const std::vector<std::byte> data(bytes_in_frame, static_cast<std::byte>(i + 1));
    detail::frame f;
    f.call = call_number(static_cast<std::int64_t>(i + 1));
    f.bytes = data.size();
    lane.post(f, data, nullptr);
    lane.write_on();
    std::vector<std::byte> bytes(4096);
    const ssize_t n = ::recv(there.get(), bytes.data(), bytes.size(), 0);
    REQUIRE(n > 0);
    bytes.resize(static_cast<std::size_t>(n));
    all.push_back(bytes);
  }
  return all;
}
/// How many frames come, each of them right, and the trouble there is. Errors: where one comes that is not right.
std::pair<std::size_t, std::string> received(protection by, const std::vector<std::byte>& stream) {
  auto [there, here] = a_connection();
  detail::socket_lane lane;
  lane.fd = std::move(here);
  lane.peer = 1;
  lane.seals = seals_of(by, false);
  std::array<std::array<std::byte, bytes_in_frame>, frames> to{};
  std::array<std::shared_ptr<bool>, frames> is_over;
  for (std::size_t i = 0; i < frames; ++i) {
    is_over[i] = std::make_shared<bool>(false);
    lane.in.push_back({call_number(static_cast<std::int64_t>(i + 1)), to[i], nullptr, is_over[i]});
  }
  REQUIRE(::send(there.get(), stream.data(), stream.size(), detail::no_signal) == static_cast<ssize_t>(stream.size()));
  std::string text;
  try {
    lane.move_on();
  } catch (const detail::trouble& t) {
    text = t.text;
    require(t.peer == 1, "the rank that it came from");
  }
  std::size_t n = 0;
  while (n < frames && *is_over[n]) ++n;
  for (std::size_t i = 0; i < frames; ++i)
    for (const std::byte b : to[i])
      require(b == std::byte{0} || b == static_cast<std::byte>(i + 1), "no byte that was not sent");
  return {n, text};
}
std::vector<std::byte> joined_frames(const std::vector<std::vector<std::byte>>& all) {
  std::vector<std::byte> stream;
  for (const auto& one : all) stream.insert(stream.end(), one.begin(), one.end());
  return stream;
}

}  // namespace

TEST_CASE("sealed lanes: each changed byte is an error before its frame is over", "[parallel][communicator]") {
  for (const protection by : protections()) {
    const auto all = sent_frames(by);
    const std::vector<std::byte> good = joined_frames(all);
    CHECK(received(by, good) == std::pair(frames, std::string()));
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::vector<std::byte> bad = good;
      bad[i] ^= std::byte{0x10};
      const auto [came, text] = received(by, bad);
      INFO("byte " << i);
      if (came != i / all[0].size() || text.find("what came from rank 1 is not what it sent") == std::string::npos)
        FAIL(came << " frames came: " << text);
    }
  }
}

TEST_CASE("sealed lanes: frames that are lost, repeated, swapped or cut off are an error", "[parallel][communicator]") {
  for (const protection by : protections()) {
    const auto good = sent_frames(by);
    const auto require_error = [&](const std::vector<std::vector<std::byte>>& all, std::size_t come) {
      const auto [came, text] = received(by, joined_frames(all));
      CHECK(came == come);
      CHECK_THAT(text, Catch::Contains("bytes were changed, lost, repeated or swapped on the way"));
    };
    for (std::size_t i = 0; i + 1 < frames; ++i) {
      auto lost = good, twice = good, swapped = good, cut = good, longer = good;
      lost.erase(lost.begin() + static_cast<std::ptrdiff_t>(i));
      require_error(lost, i);
      twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(i), good[i]);
      require_error(twice, i + 1);
      std::swap(swapped[i], swapped[i + 1]);
      require_error(swapped, i);
      cut[i].resize(cut[i].size() - 3);
      require_error(cut, i);
      longer[i].push_back(std::byte{0});
      require_error(longer, i + 1);
    }
    auto end_is_lost = good;
    end_is_lost.back().resize(30);
    CHECK(received(by, joined_frames(end_is_lost)) == std::pair(frames - 1, std::string()));  // waits for it
  }
}

TEST_CASE("sealed lanes: the other direction has another key", "[parallel][communicator]") {
  for (const protection by : protections()) {
    detail::connection_seals here = seals_of(by, true), there = seals_of(by, false);
    const std::array<std::byte, 4> data{std::byte{1}, std::byte{2}};
    std::array<std::byte, 4 + detail::tag_size> sealed{}, other{};
    std::array<std::byte, 4> to{};
    here.out.seal(data, sealed.data());
    there.out.seal(data, other.data());
    CHECK(sealed != other);
    auto back = sealed, again = sealed;  // open() may overwrite them
    CHECK_FALSE(here.in.open(back, to.data()));
    CHECK(to == std::array<std::byte, 4>{});
    CHECK(there.in.open(again, to.data()));
    CHECK(to == data);
    here.out.seal(data, other.data());
    CHECK(other != sealed);  // the same bytes as the second record
  }
}

// ---- a relay between two ranks
// ---------------------------------------------------------------------------------------

namespace {

/// What happens to bytes that go by: connection (in the order in which they are made), direction (0: to rank 0), bytes.
using meddler = std::function<void(int connection, int direction, std::vector<std::byte>& bytes)>;

/// Takes the place of rank 0 at a path, and passes on what comes to where it has moved the socket of rank 0.
class relay {
 public:
  /// Errors: std::runtime_error where rank 0 does not listen.
  relay(const std::string& path, meddler m) : meddle_(std::move(m)) {
    const std::string real = path + ".real";
    for (int i = 0; i < 10000 && !std::filesystem::exists(path); ++i) std::this_thread::sleep_for(1ms);
    if (::rename(path.c_str(), real.c_str()) != 0) throw std::runtime_error("rank 0 does not listen");
    real_ = detail::parse_address("unix:" + real);
    door_.emplace("unix:" + path);
    thread_ = std::thread([this] { serve(); });
  }
  ~relay() {
    stop_ = true;
    thread_.join();
  }

 private:
  struct way {
    int from, to, connection, direction;
    bool is_open = true;
  };
  void serve() {
    std::list<std::pair<detail::descriptor, detail::descriptor>> connections;
    std::list<way> ways;
    while (!stop_) {
      std::vector<pollfd> polls{{door_->get(), POLLIN, 0}};
      for (const way& w : ways)
        if (w.is_open) polls.push_back({w.from, POLLIN, 0});
      ::poll(polls.data(), static_cast<nfds_t>(polls.size()), 5);
      for (way& w : ways) {
        if (!w.is_open) continue;
        std::vector<std::byte> bytes(1 << 14);
        const ssize_t n = ::recv(w.from, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        w.is_open = n > 0;
        if (n <= 0) {
          ::shutdown(w.to, SHUT_WR);
          continue;
        }
        bytes.resize(static_cast<std::size_t>(n));
        meddle_(w.connection, w.direction, bytes);
        if (!bytes.empty()) static_cast<void>(::send(w.to, bytes.data(), bytes.size(), detail::no_signal));
      }
      detail::descriptor in(::accept(door_->get(), nullptr, nullptr));
      if (in.get() < 0) continue;
      detail::descriptor out(::socket(AF_UNIX, SOCK_STREAM, 0));
      for (int i = 0; i < 1000 && ::connect(out.get(), real_.get(), real_.length) != 0; ++i)
        std::this_thread::sleep_for(1ms);
      const int number = static_cast<int>(connections.size());
      ways.push_back({in.get(), out.get(), number, 0});
      ways.push_back({out.get(), in.get(), number, 1});
      connections.emplace_back(std::move(in), std::move(out));
    }
  }

  meddler meddle_;
  detail::socket_address real_;
  std::optional<detail::listener> door_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct outcome {
  bool is_right = false, is_wrong = false;  ///< neither: an error
  std::string text;
  int peer = -2;
};

/// A sum, a message and a barrier of two ranks with a relay between them.
std::array<outcome, 2> short_run(const std::string& path, protection by, std::chrono::duration<double> timeout,
                                 const meddler& meddle) {
  std::array<outcome, 2> all;
  const auto rank = [&](int r) {
    outcome& mine = all[static_cast<std::size_t>(r)];
    try {
      socket_options o{.rank = r, .size = 2, .address = "unix:" + path, .timeout = timeout};
      o.integrity = by != protection::none;
      o.encryption = by == protection::encryption;
      o.log = [](const std::string&) {};
      socket_communicator ranks(o);
      const tensor sum = ranks.all_reduce(values_of<float>(r, 5), reduction::sum, "w").get();
      bool is_right = sum.numel() == 5;
      for (index_t i = 0; i < 5; ++i) is_right = is_right && sum(i) == sum_at<float>(2, i, false);
      if (r == 0) ranks.send(values_of<float>(7, 3), 1, 2).get();
      else {
        const tensor came = ranks.receive<float>(3, 0, 2).get();
        for (index_t i = 0; i < 3; ++i) is_right = is_right && came(i) == value_of<float>(7, i);
      }
      ranks.barrier("end").get();
      mine.is_right = is_right;
      mine.is_wrong = !is_right;
    } catch (const communication_error& e) {
      mine.text = e.what();
      mine.peer = e.peer();
    } catch (const std::exception& e) {
      mine.text = std::string("another exception: ") + e.what();
      mine.is_wrong = true;
    }
  };
  std::thread first(rank, 0);
  {
    relay between(path, meddle);
    std::thread second(rank, 1);
    first.join();
    second.join();
  }
  std::filesystem::remove(path + ".real");
  return all;
}

/// A folder for the sockets, and runs that are played some at a time.
struct stage {
  stage() {
    char name[] = "/tmp/sinter_relay_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder = name;
    ::setenv("SINTER_COMM_SECRET", secret, 1);
  }
  ~stage() { std::filesystem::remove_all(folder); }
  void play(std::size_t count, const std::function<void(std::size_t, const std::string&)>& run) const {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> workers;
    for (int i = 0; i < 40; ++i)
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < count; at = next++) run(at, folder + "/" + std::to_string(at));
      });
    for (std::thread& t : workers) t.join();
  }
  std::string folder;
};

struct place {
  int connection, direction;
  std::size_t byte;
};
/// Where bytes go in a run in which nothing is changed.
std::vector<place> places(const stage& here, protection by) {
  std::map<std::pair<int, int>, std::size_t> sizes;
  const auto all =
      short_run(here.folder + "/dry", by, 60s, [&](int connection, int direction, std::vector<std::byte>& bytes) {
        sizes[{connection, direction}] += bytes.size();
      });
  for (const outcome& o : all) {
    INFO(o.text);
    REQUIRE(o.is_right);
  }
  std::vector<place> found;
  for (const auto& [way, bytes] : sizes)
    for (std::size_t i = 0; i < bytes; ++i) found.push_back({way.first, way.second, i});
  return found;
}

struct tally {
  std::atomic<int> right{0}, wrong{0}, errors{0};
  std::mutex mutex;
  std::string first_wrong;
  void add(const std::array<outcome, 2>& ranks, const std::string& what) {
    bool is_wrong = false, is_right = true;
    std::string texts;
    for (const outcome& o : ranks) {
      // An error names a rank: the one to blame.
      const bool is_named = o.is_right || ((o.peer == 0 || o.peer == 1) && has(o.text, "rank "));
      is_wrong = is_wrong || o.is_wrong || !is_named;
      is_right = is_right && o.is_right;
      texts += "\n  " + (o.is_right ? "right" : o.text);
    }
    ++(is_wrong ? wrong : is_right ? right : errors);
    if (!is_wrong) return;
    const std::lock_guard lock(mutex);
    if (first_wrong.empty()) first_wrong = what + texts;
  }
};

/// Flips a bit of every `step`-th byte of a short run in turn.
void flip_bytes(protection by, std::size_t step, tally& told) {
  const stage here;
  const std::vector<place> all = places(here, by);
  here.play(all.size() / step, [&](std::size_t i, const std::string& path) {
    const place at = all[i * step];
    std::size_t before = 0;
    const auto flip = [&](int connection, int direction, std::vector<std::byte>& bytes) {
      if (connection != at.connection || direction != at.direction) return;
      if (at.byte >= before && at.byte < before + bytes.size())
        bytes[at.byte - before] ^= static_cast<std::byte>(1u << at.byte % 8);
      before += bytes.size();
    };
    told.add(short_run(path, by, 200ms, flip), "byte " + std::to_string(at.byte) + " of connection " +
                                                   std::to_string(at.connection) + ", direction " +
                                                   std::to_string(at.direction));
  });
}

}  // namespace

TEST_CASE("relay: every changed byte of a run is an error that names the rank, or changes no result",
          "[parallel][communicator]") {
  for (const protection by : protections()) {
    tally told;
    flip_bytes(by, by == protection::integrity ? 1 : 7, told);
    INFO(told.first_wrong);
    INFO(told.right << " runs were right, " << told.errors << " errors");
    CHECK(told.wrong == 0);
    CHECK(told.errors > 2 * told.right);  // those in the last frame, which nobody waits for
  }
}

TEST_CASE("relay: bytes that are lost, repeated or swapped are an error, or change no result",
          "[parallel][communicator]") {
  const stage here;
  for (const protection by : protections()) {
    tally told;
    here.play(160, [&](std::size_t i, const std::string& path) {
      std::mt19937 random(static_cast<unsigned>(i));
      std::map<std::pair<int, int>, std::vector<std::byte>> held;
      const auto meddle = [&](int connection, int direction, std::vector<std::byte>& bytes) {
        std::vector<std::byte>& before = held[{connection, direction}];
        if (random() % 8 == 0 && connection > 0) {
          const std::vector<std::byte> copy = bytes;
          switch (i % 4) {
            case 0:
              bytes.clear();
              break;
            case 1:
              bytes.insert(bytes.end(), copy.begin(), copy.end());
              break;
            case 2:
              before.swap(bytes);
              return;  // behind what comes next
            default:
              bytes.resize(bytes.size() / 2);
          }
        }
        bytes.insert(bytes.end(), before.begin(), before.end());
        before.clear();
      };
      told.add(short_run(path, by, 200ms, meddle), "seed " + std::to_string(i));
    });
    INFO(told.first_wrong);
    CHECK(told.wrong == 0);
    CHECK(told.errors > 0);
  }
}

TEST_CASE("relay: without integrity a changed byte may change results, and no more", "[parallel][communicator]") {
  tally told;
  flip_bytes(protection::none, 3, told);
  CHECK(told.right + told.wrong + told.errors > 100);
}
