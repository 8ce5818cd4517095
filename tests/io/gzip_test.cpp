// tests/io/gzip_test.cpp: .gz files, whole, damaged and too large, by zlib and by the program gzip, whatever signals
// do.
#include "../catch.hpp"
#include "folder.hpp"

#include <sys/stat.h>
#include <sys/time.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
namespace fs = std::filesystem;
using Catch::Contains;
using detail::gzip_program;

namespace {

/// A member of a gzip file, RFC 1952.
std::string packed(const std::string& bytes) {
  const std::string zlib = detail::zlib_runs(bytes);
  std::string gz = std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + zlib.substr(2, zlib.size() - 6);
  for (const std::size_t word : {std::size_t{detail::crc32(bytes)}, bytes.size()})
    for (int shift = 0; shift < 32; shift += 8) gz += static_cast<char>(word >> shift & 0xff);
  return gz;
}

template <class F>
std::string message_of(const F& f) {
  return ::message_of<error>(f, "no error");
}

template <class Unpacker>
std::string unpacked(const std::string& path, index_t most = default_max_unpacked) {
  return detail::read_file<detail::basic_byte_source<Unpacker>>(path, most);
}
template <class Unpacker>
std::string refused(const std::string& path, index_t most = default_max_unpacked) {
  return message_of([&] { unpacked<Unpacker>(path, most); });
}

/// f<Unpacker>() for zlib, if the tests are compiled with it, and for the program gzip, if it is there.
template <class F>
void with_each_unpacker(F f) {
  if (std::system("gzip --version > /dev/null 2>&1") == 0) f.template operator()<gzip_program>();
#if SINTER_WITH_ZLIB
  f.template operator()<detail::zlib_unpacker>();
#endif
}

/// Another handling of a signal while this lives.
class handling {
 public:
  handling(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action = {};
    action.sa_handler = handler;  // no SA_RESTART: calls that the signal interrupts fail
    REQUIRE(::sigaction(signal, &action, &before_) == 0);
  }
  handling(const handling&) = delete;
  ~handling() { ::sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_;
};

void reap_all(int) {
  const int kept = errno;
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  errno = kept;
}

std::atomic<int> alarms{0};
void count_alarm(int) { ++alarms; }

}  // namespace

TEST_CASE("gzip files of one and of several members are unpacked") {
  const folder dir;
  std::string text;
  while (text.size() < 3000000) text += std::to_string(text.size()) + ',';
  const std::string one = dir.file("it's $(here).gz", packed(text));
  const std::string none = dir.file("none.gz", packed(""));
  const std::string many = dir.file("many.gz", packed("a") + packed("") + packed("bc") + std::string(700, '\0'));
  with_each_unpacker([&]<class Unpacker>() {
    CHECK(unpacked<Unpacker>(one) == text);
    CHECK(unpacked<Unpacker>(none) == "");
    CHECK(unpacked<Unpacker>(many) == "abc");
    char begin[6];
    detail::basic_byte_source<Unpacker> source(one);  // ends before the file does
    CHECK(source.read(begin, 6) == 6);
  });
  CHECK(read_csv<int>(dir.file("table.csv.gz", packed("1,2\n3,4\n")))(1, 1) == 4);
  CHECK(read_idx<std::uint8_t, 1>(dir.file("idx.gz", packed(std::string("\0\0\x08\1\0\0\0\2\5\6", 10))))(1) == 6);
}

TEST_CASE("gzip files that are cut short, damaged or something else are refused") {
  const folder dir;
  const std::string whole = packed("1,2\n3,4\n");
  with_each_unpacker([&]<class Unpacker>() {
    const auto bad = [&](std::string_view bytes) {
      CHECK_THAT(refused<Unpacker>(dir.file("bad.gz", bytes)),
                 Contains("bad.gz: the file is cut short or not in gzip format"));
    };
    for (std::size_t size = 0; size < whole.size(); ++size) bad(whole.substr(0, size));
    bad(whole + whole.substr(0, 15));
    bad("1,2\n3,4\n");
    bad(whole + "garbage");
    bad(whole + std::string(10, '\0') + "garbage");
    for (const std::size_t at : {std::size_t{0}, std::size_t{2}, std::size_t{12}, whole.size() - 8, whole.size() - 1}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      bad(damaged);
    }
  });
}

TEST_CASE("gzip files are read where SIGCHLD is ignored, and where a handler reaps every child") {
  const folder dir;
  const std::string good = dir.file("good.gz", packed("12345")),
                    bad = dir.file("bad.gz", packed("12345").substr(0, 20));
  for (void (*handler)(int) : {SIG_IGN, &reap_all}) {
    const handling other(SIGCHLD, handler);
    for (int round = 0; round < 10; ++round)
      with_each_unpacker([&]<class Unpacker>() {
        CHECK(unpacked<Unpacker>(good) == "12345");
        CHECK_THAT(refused<Unpacker>(bad), Contains("cut short"));
      });
  }
}

TEST_CASE("signals that interrupt the reading of a file do not end it") {
  const folder dir;
  const handling other(SIGALRM, count_alarm);
  const std::string gz = packed("1,2\n3,4\n");
  const auto read_slowly = [&](const char* name, std::string bytes, auto read) {
    const std::string pipe = (dir.path / name).string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    sigset_t alarm, before;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &alarm, &before);  // the writer takes no signals, the reader all
    std::thread writer([&] {
      const auto wait_for_alarms = [](int more) {
        for (const int first = alarms; alarms < first + more;) std::this_thread::yield();
      };
      wait_for_alarms(2);
      detail::descriptor to = detail::open_file(pipe, O_RDWR);  // waits for no reader
      for (char c : bytes) {
        detail::write_all(to, {&c, 1});
        wait_for_alarms(2);
      }
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const itimerval often = {{0, 300}, {0, 300}}, off = {};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    std::string text;
    const std::string problem = message_of([&] { text = read(pipe); });
    writer.join();
    ::setitimer(ITIMER_REAL, &off, nullptr);
    fs::remove(pipe);
    CHECK(problem == "no error");
    return text;
  };
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  CHECK(read_slowly("plain", "1,2\n", [](const std::string& pipe) { return detail::read_file(pipe); }) == "1,2\n");
  with_each_unpacker([&]<class Unpacker>() {
    CHECK(read_slowly("pipe.gz", gz, [](const std::string& pipe) { return unpacked<Unpacker>(pipe); }) == "1,2\n3,4\n");
  });
  std::signal(SIGPIPE, handler);
}

TEST_CASE("a gzip file may not unpack to more than the options allow") {
  const folder dir;
  const std::string bomb = dir.file("bomb.gz", packed(std::string(5000000, '7')));
  with_each_unpacker([&]<class Unpacker>() {
    CHECK(unpacked<Unpacker>(bomb, 5000000).size() == 5000000);
    for (const index_t most : {0, 1, 4999999})
      CHECK_THAT(refused<Unpacker>(bomb, most),
                 Contains("bomb.gz: unpacks to more than " + std::to_string(most) + " bytes; max_unpacked"));
  });
  CHECK_THAT(message_of([&] { read_csv<int>(dir.file("t.csv.gz", packed("1,2\n3,4\n")), {.max_unpacked = 7}); }),
             Contains("more than 7 bytes"));
  const std::string idx = std::string("\0\0\x08\1\0\0\0\2\5\6", 10);
  CHECK_THAT(message_of([&] { read_idx<std::uint8_t, 1>(dir.file("idx.gz", packed(idx)), {.max_unpacked = 9}); }),
             Contains("more than 9 bytes"));
  CHECK(read_idx<std::uint8_t, 1>(dir.file("idx", idx), {.max_unpacked = 9}).numel() == 2);  // not packed
  CHECK_THROWS_AS(read_csv<int>(bomb, {.max_unpacked = -1}), value_error);
}

TEST_CASE("the program gzip is found in programs without standard streams, and missed by its name") {
  const folder dir;
  const std::string good = dir.file("good.gz", packed("12345"));
  with_each_unpacker([&]<class Unpacker>() {
    int kept[3];
    for (int stream = 0; stream < 3; ++stream) kept[stream] = ::dup(stream);
    for (int stream = 0; stream < 3; ++stream) ::close(stream);
    const std::string text = message_of([&] { throw error(unpacked<Unpacker>(good)); });
    for (int stream = 0; stream < 3; ++stream) {
      ::dup2(kept[stream], stream);
      ::close(kept[stream]);
    }
    CHECK(text == "12345");
  });
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", dir.path.c_str(), 1);
  CHECK_THAT(refused<gzip_program>(good),
             Contains("needs zlib (SINTER_WITH_ZLIB) or the program gzip, which was not found"));
  ::setenv("PATH", path.c_str(), 1);
}
