// sinter/ranks/mpi/runtime.hpp: MPI in this process, and the thread that calls it.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_MPI
#error "sinter: sinter/ranks/mpi/runtime.hpp needs MPI: compile with mpicxx -DSINTER_WITH_MPI=1, or link sinter::mpi"
#endif

// The C++ bindings, which MPI 3 removed, would have to be linked.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <chrono>
#include <cstdio>

#include "sinter/ranks/communication.hpp"

namespace sinter::detail {

inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw trouble{communication_failure::backend, -1, joined({call, ": ", std::string_view(text)})};
}

/// MPI in this process, and the one thread that calls it: begun with the first communicator, finalised with the last
/// one where nothing failed. Where something did, the end of the process ends the whole job: to finalise would hang.
class mpi_runtime {
 public:
  static std::shared_ptr<mpi_runtime> get(double timeout) {
    static std::weak_ptr<mpi_runtime> current;
    if (auto there = current.lock()) return there;
    std::shared_ptr<mpi_runtime> made(new mpi_runtime(timeout));
    made->thread_.call_last([&] { made->begin(); });
    current = made;
    return made;
  }
  mpi_runtime(const mpi_runtime&) = delete;
  mpi_runtime& operator=(const mpi_runtime&) = delete;
  ~mpi_runtime() {
    if (!is_ours_ || has_failed()) return;
    if (thread_.call_last([] { MPI_Finalize(); }, timeout_)) return;
    std::fprintf(stderr, "sinter: MPI_Finalize() waits for other ranks in vain; the job is ended\n");
    fail();
    thread_.leave_behind();
    std::exit(1);
  }

  communication_thread& thread() { return thread_; }
  static void fail() { failed_.store(true); }
  static bool has_failed() { return failed_.load(); }

 private:
  explicit mpi_runtime(double timeout) : timeout_(timeout) {}

  void begin() {
    int is_over = 0, is_there = 0, level = MPI_THREAD_SINGLE;
    MPI_Finalized(&is_over);
    if (is_over != 0)
      throw trouble{communication_failure::backend, -1, "MPI is finalised already, and begins once in a process only"};
    MPI_Initialized(&is_there);
    if (is_there == 0) {
      // All calls come from this thread; the program may call MPI too where it grants that.
      check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
      is_ours_ = true;
    } else {
      MPI_Query_thread(&level);
      if (level < MPI_THREAD_SERIALIZED)
        throw trouble{
            communication_failure::backend, -1,
            "MPI was initialised without threads; let the communicator initialise it, or ask MPI_Init_thread() "
            "for MPI_THREAD_MULTIPLE"};
    }
    static const int asked = std::atexit([] {
      if (!has_failed()) return;
      std::fflush(nullptr);
      int finalized = 0;
      MPI_Finalized(&finalized);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the others end by themselves, and say why
      if (finalized == 0) MPI_Abort(MPI_COMM_WORLD, 1);
      std::_Exit(1);
    });
    static_cast<void>(asked);
  }

  static inline std::atomic<bool> failed_{false};
  double timeout_;
  bool is_ours_ = false;
  communication_thread thread_;
};

}  // namespace sinter::detail
