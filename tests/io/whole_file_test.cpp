// tests/io/whole_file_test.cpp: written files are complete or as they were, whoever else writes and whatever the name
// leads to.
#include "../catch.hpp"
#include "folder.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
namespace fs = std::filesystem;
using Catch::Contains;
using detail::read_file;
using detail::write_file;

namespace {

using names = std::vector<std::string>;

struct stat state_of(const std::string& path) {
  struct stat info;
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

template <class F>
std::string message_of(const F& f) {
  return ::message_of<io_error>(f, "no io_error");
}

}  // namespace

TEST_CASE("writers of one name at once leave the bytes of one of them") {
  const folder dir;
  const std::string name = dir.file("x");
  std::vector<std::thread> writers;
  std::atomic<int> problems{0};
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 50; ++i) {
        try {
          write_file(name, std::string(100000 + 1000 * static_cast<std::size_t>(w), static_cast<char>('a' + w)));
          const std::string now = read_file(name);
          if (now.size() != 100000 + 1000 * static_cast<std::size_t>(now[0] - 'a')) ++problems;
          if (now.find_first_not_of(now[0]) != std::string::npos) ++problems;
        } catch (const io_error&) {
          ++problems;
        }
      }
    });
  for (auto& w : writers) w.join();
  CHECK(problems == 0);
  CHECK(dir.names() == names{"x"});
}

TEST_CASE("a file named like the one that is written, with .part, is left alone") {
  const folder dir;
  write_file(dir.file("x.part"), "mine");
  write_file(dir.file("x"), "new");
  CHECK(read_file(dir.file("x.part")) == "mine");
  CHECK(dir.names() == names{"x", "x.part"});
}

TEST_CASE("a name of the greatest length can be written") {
  const folder dir;
  const std::string name(static_cast<std::size_t>(::pathconf(dir.path.c_str(), _PC_NAME_MAX)), 'n');
  write_file(dir.file(name), "1");
  CHECK(dir.names() == names{name});
}

TEST_CASE("a file that is replaced keeps its mode, and a new one follows the umask") {
  const folder dir;
  const mode_t before = ::umask(027);
  write_file(dir.file("new"), "1");
  ::umask(before);
  CHECK((state_of(dir.file("new")).st_mode & 07777) == 0640);
  for (const mode_t mode : {0600u, 0755u, 0666u}) {
    REQUIRE(::chmod(dir.file("new").c_str(), mode) == 0);
    write_file(dir.file("new"), "2");
    CHECK((state_of(dir.file("new")).st_mode & 07777) == mode);
  }
  if (::chown(dir.file("new").c_str(), 12, 34) == 0) {  // root keeps the owner too
    REQUIRE(::chmod(dir.file("new").c_str(), 04750) == 0);
    write_file(dir.file("new"), "3");
    CHECK(state_of(dir.file("new")).st_uid == 12);
    CHECK(state_of(dir.file("new")).st_gid == 34);
    CHECK((state_of(dir.file("new")).st_mode & 07777) == 04750);
  }
  if (::geteuid() != 0) {
    REQUIRE(::chmod(dir.file("new").c_str(), 0400) == 0);
    CHECK_THAT(message_of([&] { write_file(dir.file("new"), "3"); }),
               Contains("cannot open for writing: Permission denied"));
    CHECK(read_file(dir.file("new")) == "2");
  }
}

TEST_CASE("symbolic links lead to the file that is written") {
  const folder dir;
  fs::create_directory(dir.path / "sub");
  fs::create_symlink("sub/real", dir.path / "link");  // the target is not there yet
  fs::create_symlink(dir.path / "link", dir.path / "far");
  fs::create_directory_symlink("sub", dir.path / "also_sub");
  for (const char* text : {"1", "2"}) {
    write_file(dir.file("far"), text);
    CHECK(read_file(dir.file("sub/real")) == text);
  }
  write_file(dir.file("also_sub/real"), "3");
  CHECK(read_file(dir.file("far")) == "3");
  CHECK(fs::is_symlink(dir.path / "far"));
  CHECK(fs::is_symlink(dir.path / "link"));
  CHECK(dir.names() == names{"also_sub", "far", "link", "sub"});
  fs::create_symlink("ring", dir.path / "ring");
  CHECK_THAT(message_of([&] { write_file(dir.file("ring"), "1"); }), Contains("ring: cannot open for writing"));
}

TEST_CASE("pipes and devices are written straight to and stay what they are") {
  const folder dir;
  REQUIRE(::mkfifo(dir.file("pipe").c_str(), 0600) == 0);
  const detail::descriptor reader = detail::open_file(dir.file("pipe"), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader.is_open());
  write_file(dir.file("pipe"), "through the pipe");
  CHECK(S_ISFIFO(state_of(dir.file("pipe")).st_mode));
  char got[32];
  CHECK(detail::read_some(reader, got, sizeof got) == 16);
  fs::create_symlink("/dev/null", dir.path / "null");
  write_file(dir.file("null"), "nowhere");
  CHECK(fs::is_symlink(dir.path / "null"));
  if (::mknod(dir.file("device").c_str(), S_IFCHR | 0600, ::makedev(1, 3)) == 0) {  // only root may
    try {
      write_file(dir.file("device"), "nowhere");
    } catch (const io_error&) {  // a folder without devices
    }
    CHECK(S_ISCHR(state_of(dir.file("device")).st_mode));
    fs::remove(dir.path / "device");
  }
  CHECK(dir.names() == names{"null", "pipe"});
}

TEST_CASE("what cannot be written is an io_error, leaves nothing, and what was there stays") {
  const folder dir;
  CHECK_THAT(message_of([] { write_file("/nonexistent/x", "1"); }),
             Contains("/nonexistent/x: cannot make a new file in its folder: No such file"));
  fs::create_directory(dir.file("taken"));
  CHECK_THAT(message_of([&] { write_file(dir.file("taken"), "x"); }),
             Contains("taken: cannot open for writing: Is a directory"));
  CHECK_THROWS_AS(write_file("", "x"), io_error);
  write_file(dir.file("old"), "as before");
  rlimit before, small;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string full = message_of([&] { write_file(dir.file("old"), std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(full, Contains("old: writing failed: File too large"));
  CHECK(read_file(dir.file("old")) == "as before");
  CHECK(dir.names() == names{"old", "taken"});
}

TEST_CASE("a durable writer replaces the file, and removes what killed ones left") {
  const folder dir;
  const auto save = [&](std::string_view text) {
    detail::write_pieces(dir.file("x"), {&text, 1}, detail::durability::of_the_disk);
  };
  save("1");
  CHECK(dir.names() == names{"x"});
  REQUIRE(::chmod(dir.file("x").c_str(), 0640) == 0);
  write_file(dir.file(".sinter-7-0.saving"), "half of a file");
  write_file(dir.file(".sinter-7-1.saving"), "still at work");
  write_file(dir.file(".sinter-7-0.part"), "not of a durable writer");
  {
    const detail::descriptor at_work = detail::open_file(dir.file(".sinter-7-1.saving"), O_WRONLY);
    REQUIRE(::flock(at_work.get(), LOCK_EX | LOCK_NB) == 0);
    save("2");
    CHECK(dir.names() == names{".sinter-7-0.part", ".sinter-7-1.saving", "x"});
  }
  save("3");
  CHECK(dir.names() == names{".sinter-7-0.part", "x"});
  CHECK(read_file(dir.file("x")) == "3");
  CHECK((state_of(dir.file("x")).st_mode & 07777) == 0640);
}

TEST_CASE("durable writers of one name at once do not take each other's files away") {
  const folder dir;
  std::atomic<int> problems{0};
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w)
    writers.emplace_back([&, w] {
      const std::string text(50000 + 1000 * static_cast<std::size_t>(w), static_cast<char>('a' + w));
      const std::string_view piece = text;
      for (int i = 0; i < 20; ++i) {
        try {
          detail::write_pieces(dir.file("x"), {&piece, 1}, detail::durability::of_the_disk);
          const std::string now = read_file(dir.file("x"));
          if (now.size() != 50000 + 1000 * static_cast<std::size_t>(now[0] - 'a')) ++problems;
        } catch (const io_error&) {
          ++problems;
        }
      }
    });
  for (auto& w : writers) w.join();
  CHECK(problems == 0);
  CHECK(dir.names() == names{"x"});
}
