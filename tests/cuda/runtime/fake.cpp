// tests/cuda/runtime/fake.cpp: the functions of the CUDA runtime and cuBLASLt that Sinter and CUB call, without a GPU;
// see fake.hpp.
#include "fake.hpp"
#include "fake_inside.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace fake_cuda {
namespace {

constexpr std::size_t usual_shared = 48 * 1024, most_shared = 163 * 1024;  // of a block, on sm_80
constexpr int garbage = 0xCB;

struct lane;

/// One piece of work on a stream. Empty functions are kernels and marks.
struct operation {
  std::function<void()> run;
  std::shared_ptr<lane> after;  ///< runs when that one has done `upto` operations
  std::uint64_t upto = 0;
  std::shared_ptr<launch> started;
  std::function<bool()> ready = nullptr;  ///< work with other GPUs: false as long as it must wait for them
};

struct recording {
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool valid = true;
  std::vector<operation> work;
};

/// A stream.
struct lane {
  int gpu = 0;
  std::deque<operation> waiting;
  std::uint64_t put = 0, done = 0;
  bool runs = false;
  std::unique_ptr<recording> captured;
};

struct event {
  int gpu = 0;
  std::shared_ptr<lane> on;
  std::uint64_t upto = 0;
  bool captured = false;
};

struct graph {
  int gpu = 0;
  std::vector<operation> work;
};

struct block {
  std::size_t bytes;
  int gpu;  ///< -1: pinned memory of the host
  unsigned flags = 0;
};

struct state {
  std::mutex busy;
  machine shape;
  std::map<const char*, block> blocks;
  std::map<cudaStream_t, std::shared_ptr<lane>> lanes;
  std::map<int, std::shared_ptr<lane>> legacy;  ///< the streams that all calls without one use
  std::map<cudaEvent_t, event> events;
  std::map<cudaGraph_t, graph> graphs;
  std::map<cudaGraphExec_t, graph> executables;
  struct kernel {
    std::string name;
    const void* binary;
  };
  std::map<const void*, kernel> kernels;
  std::set<std::pair<int, const void*>> much_shared;
  std::set<std::pair<int, int>> paths;
  std::vector<launch> log;
  std::vector<std::string> wrong;
  bool planned = false;
  fault next;
  std::string failed;
  std::string awaited;
  std::function<void()> before_awaited;
  cudaError_t breaking = cudaSuccess, broken = cudaSuccess;
  std::uintptr_t handles = 0x1000;
  std::size_t libraries = 0, descriptors = 0;
};
/// Kernels are registered before main, and tensors may be freed after it.
state& all() {
  static state& s = *new state;
  return s;
}
thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;
/// What stands between <<< and >>> of the next launch.
struct configuration {
  dim3 grid, threads;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local configuration stub;

template <class Handle>
Handle new_handle() {
  return reinterpret_cast<Handle>(all().handles += 0x10);
}

}  // namespace

void note(const std::string& what) { all().wrong.push_back(what); }

namespace {

cudaError_t misuse(const std::string& what, cudaError_t status = cudaErrorInvalidValue) {
  note(what);
  return status;
}

std::string on_gpu(int gpu) { return gpu < 0 ? "pinned memory" : "GPU " + std::to_string(gpu); }

}  // namespace

std::string trouble(const void* p, std::size_t bytes, int gpu) {
  const auto& blocks = all().blocks;
  auto at = blocks.upper_bound(static_cast<const char*>(p));
  if (at == blocks.begin()) return "there is no memory of " + on_gpu(gpu);
  --at;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(p) - at->first);
  if (offset >= at->second.bytes) return "no memory of " + on_gpu(gpu);
  if (at->second.gpu != gpu) return "memory of " + on_gpu(at->second.gpu) + ", not of " + on_gpu(gpu);
  if (bytes > at->second.bytes - offset) return std::to_string(bytes) + " bytes reach past the end of the allocation";
  return {};
}

std::pair<const char*, const char*> reachable(const void* p, int gpu) {
  const auto& blocks = all().blocks;
  auto at = blocks.upper_bound(static_cast<const char*>(p));
  if (at == blocks.begin()) return {};
  const auto& [begin, b] = *--at;
  if (static_cast<const char*>(p) >= begin + b.bytes) return {};
  if (b.gpu >= 0 && b.gpu != gpu && !has_path(gpu, b.gpu)) return {};
  return {begin, begin + b.bytes};
}
kernel_runner*& runner() {
  static kernel_runner* one = nullptr;
  return one;
}

namespace {

/// What computes a kernel; a failure breaks the GPU.
std::function<void()> run_of(const void* binary, const std::shared_ptr<launch>& l, void** arguments) {
  return [binary, l, kept = runner()->parameters(binary, l->kernel, arguments)] {
    try {
      runner()->run(binary, *l, kept.data());
    } catch (const std::exception& e) {
      note(e.what());
      all().broken = cudaErrorIllegalAddress;
    }
  };
}

// Faults and the state of the machine, which come before what a call does.

bool is_planned(const char* function) {
  state& s = all();
  if (!s.planned || (!s.next.function.empty() && s.next.function != function)) return false;
  if (--s.next.after > 0) return false;
  s.planned = false;
  s.failed = function;
  return true;
}
bool allocates(const char* function) {
  return std::strcmp(function, "cudaMalloc") == 0 || std::strcmp(function, "cudaHostAlloc") == 0;
}

cudaError_t machine_error() {
  const state& s = all();
  if (s.shape.driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
  if (s.shape.gpus == 0) return cudaErrorNoDevice;
  return s.broken;
}

template <class F>
cudaError_t call(const char* function, const F& f) {
  state& s = all();
  std::unique_lock lock(s.busy);
  if (s.before_awaited && s.awaited == function) {
    const auto f = std::exchange(s.before_awaited, nullptr);
    lock.unlock();
    f();
    lock.lock();
  }
  cudaError_t status = machine_error();
  if (status == cudaSuccess && is_planned(function)) status = allocates(function) ? s.next.allocation : s.next.error;
  if (status == cudaSuccess) status = f(s);
  // Who waits for work with other GPUs waits until these do their part.
  for (int looks = 0; status == cudaErrorNotReady && std::strcmp(function, "cudaEventQuery") != 0; ++looks) {
    if (looks == 20000) {
      note(std::string(function) + " waits for work with other GPUs in vain");
      status = cudaErrorUnknown;
      break;
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
    status = f(s);
  }
  if (status != cudaSuccess) last = status;
  return status;
}

// Streams.

/// False where work of other GPUs has to come first.
bool run_until(lane& l, std::uint64_t upto) {
  state& s = all();
  if (l.done >= upto || l.runs) return l.done >= upto;
  l.runs = true;
  while (l.done < upto && !l.waiting.empty()) {
    const operation& next = l.waiting.front();
    if (next.after && !run_until(*next.after, next.upto)) break;
    if (next.ready && !next.ready()) break;
    const operation now = std::move(l.waiting.front());
    l.waiting.pop_front();
    if (s.breaking != cudaSuccess && !now.after) s.broken = std::exchange(s.breaking, cudaSuccess);
    if (s.broken == cudaSuccess && now.run) now.run();
    ++l.done;
  }
  l.runs = false;
  return l.done >= upto;
}
bool run_all(lane& l) { return run_until(l, l.put); }

lane* find(cudaStream_t stream) {
  const auto at = all().lanes.find(stream);
  return at == all().lanes.end() ? nullptr : at->second.get();
}

/// For what must not happen near a capture, depending on its mode. A call that is refused ends the capture.
cudaError_t unsafe(const char* function) {
  cudaError_t status = cudaSuccess;
  for (auto& [handle, l] : all().lanes) {
    recording* const r = l->captured.get();
    if (r == nullptr || r->mode == cudaStreamCaptureModeRelaxed) continue;
    if (r->mode == cudaStreamCaptureModeThreadLocal && r->thread != std::this_thread::get_id()) continue;
    r->valid = false;
    status = misuse(std::string(function) + " while a stream is captured", cudaErrorStreamCaptureUnsupported);
  }
  return status;
}

cudaError_t put(lane& l, operation o) {
  if (l.captured) {
    if (!l.captured->valid) return cudaErrorStreamCaptureInvalidated;
    l.captured->work.push_back(std::move(o));
    return cudaSuccess;
  }
  if (o.started) all().log.push_back(*o.started);
  l.waiting.push_back(std::move(o));
  ++l.put;
  return cudaSuccess;
}

/// For calls whose device must be the stream's.
cudaError_t wrong_device(const char* function, const lane* l) {
  if (l == nullptr) return misuse(std::string(function) + ": there is no such stream", cudaErrorInvalidResourceHandle);
  if (l->gpu != current)
    return misuse(std::string(function) + ": the stream belongs to GPU " + std::to_string(l->gpu) +
                      ", the current one is " + std::to_string(current),
                  cudaErrorInvalidResourceHandle);
  return cudaSuccess;
}

cudaError_t put_copy(const char* function, lane& l, void* to, int to_gpu, const void* from, int from_gpu,
                     std::size_t bytes) {
  const std::string of[2] = {trouble(to, bytes, to_gpu), trouble(from, bytes, from_gpu)};
  if (!of[0].empty()) return misuse(std::string(function) + ": destination: " + of[0]);
  if (!of[1].empty()) return misuse(std::string(function) + ": source: " + of[1]);
  operation o;
  o.run = [=, name = std::string(function)] {
    const std::string late[2] = {trouble(to, bytes, to_gpu), trouble(from, bytes, from_gpu)};
    if (!late[0].empty()) misuse(name + ", when it ran: destination: " + late[0]);
    else if (!late[1].empty()) misuse(name + ", when it ran: source: " + late[1]);
    else std::memmove(to, from, bytes);
  };
  return put(l, std::move(o));
}

cudaError_t take(void** p, std::size_t bytes, int gpu, unsigned flags) {
  state& s = all();
  if (bytes == 0) return misuse("an allocation of no bytes");
  if (gpu >= 0) {
    std::size_t taken = 0;
    for (const auto& [at, b] : s.blocks)
      if (b.gpu == gpu) taken += b.bytes;
    if (bytes > s.shape.memory || taken > s.shape.memory - bytes) return cudaErrorMemoryAllocation;
  }
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*p == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*p, garbage, bytes);
  s.blocks[static_cast<char*>(*p)] = {bytes, gpu, flags};
  return cudaSuccess;
}

cudaError_t give(const char* function, void* p, bool pinned) {
  state& s = all();
  if (p == nullptr) return cudaSuccess;
  const auto at = s.blocks.find(static_cast<char*>(p));
  if (at == s.blocks.end())
    return misuse(std::string(function) + ": no allocation begins there, or it was freed before");
  if ((at->second.gpu < 0) != pinned) return misuse(std::string(function) + ": memory of another kind");
  for (auto& [handle, l] : s.lanes)
    if (pinned || l->gpu == at->second.gpu) run_all(*l);
  for (auto& [gpu, l] : s.legacy)
    if (pinned || gpu == at->second.gpu) run_all(*l);
  s.blocks.erase(at);
  std::free(p);
  return cudaSuccess;
}

}  // namespace

cublasStatus_t begin_library_call(const char* function, std::unique_lock<std::mutex>& lock) {
  state& s = all();
  lock = std::unique_lock(s.busy);
  if (machine_error() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  return is_planned(function) ? s.next.library : CUBLAS_STATUS_SUCCESS;
}
int current_gpu() { return current; }
std::size_t& live_libraries() { return all().libraries; }
std::size_t& live_descriptors() { return all().descriptors; }
bool put_library_work(const char* function, cudaStream_t stream, std::function<void()> run) {
  lane* const l = find(stream);
  if (wrong_device(function, l) != cudaSuccess) return false;
  operation o;
  o.run = std::move(run);
  o.started = std::make_shared<launch>(launch{function, l->gpu, 1, 1, 0});
  return put(*l, std::move(o)) == cudaSuccess;
}

bool put_shared_work(const char* function, cudaStream_t stream, std::function<bool()> ready, std::function<void()> run,
                     std::function<bool()>& reach) {
  lane* const l = find(stream);
  if (wrong_device(function, l) != cudaSuccess) return false;
  operation o;
  o.run = std::move(run);
  o.ready = std::move(ready);
  o.started = std::make_shared<launch>(launch{function, l->gpu, 1, 1, 0});
  if (put(*l, std::move(o)) != cudaSuccess) return false;
  reach = [own = all().lanes.at(stream), before = l->put - 1] { return run_until(*own, before); };
  return true;
}

machine& settings() { return all().shape; }

living now_living() {
  state& s = all();
  const std::lock_guard lock(s.busy);
  const auto pinned = static_cast<std::size_t>(
      std::count_if(s.blocks.begin(), s.blocks.end(), [](const auto& b) { return b.second.gpu < 0; }));
  return {s.blocks.size() - pinned, pinned,      s.lanes.size(), s.events.size(), s.graphs.size(),
          s.executables.size(),     s.libraries, s.descriptors};
}
std::string text(const living& l) {
  std::string t;
  const std::pair<const char*, std::size_t> parts[] = {
      {"blocks", l.blocks}, {"pinned", l.pinned},           {"streams", l.streams},     {"events", l.events},
      {"graphs", l.graphs}, {"executables", l.executables}, {"libraries", l.libraries}, {"descriptors", l.descriptors}};
  for (const auto& [name, n] : parts) t += std::to_string(n) + " " + name + ", ";
  return t;
}
std::size_t bytes_taken(int gpu) {
  state& s = all();
  const std::lock_guard lock(s.busy);
  std::size_t bytes = 0;
  for (const auto& [at, b] : s.blocks)
    if (b.gpu == gpu) bytes += b.bytes;
  return bytes;
}
bool has_path(int gpu, int other) { return all().paths.contains({gpu, other}); }
const std::vector<launch>& launches() { return all().log; }
std::vector<std::string> misuses() {
  state& s = all();
  const std::lock_guard lock(s.busy);
  return std::exchange(s.wrong, {});
}
void plan(const fault& f) {
  state& s = all();
  const std::lock_guard lock(s.busy);
  s.next = f;
  s.planned = true;
  s.failed.clear();
}
std::string end_plan() {
  state& s = all();
  const std::lock_guard lock(s.busy);
  s.planned = false;
  return std::exchange(s.failed, {});
}
void before_next(const std::string& function, std::function<void()> f) {
  state& s = all();
  const std::lock_guard lock(s.busy);
  s.awaited = function;
  s.before_awaited = std::move(f);
}
void break_soon(cudaError_t error) { all().breaking = error; }
void mend() {
  all().broken = all().breaking = cudaSuccess;
  last = cudaSuccess;
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

// What the code that nvcc adds to a file calls.

void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  all().kernels[host] = {name, *handle};
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }
cudaError_t __cudaGetKernel(cudaKernel_t* to, const void* host) {
  *to = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
// CUB starts some kernels by <<<>>>, which become calls of their stubs.
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 threads, std::size_t shared, CUstream_st* stream) {
  stub = {grid, threads, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* threads, std::size_t* shared, void* stream) {
  *grid = stub.grid;
  *threads = stub.threads;
  *shared = stub.shared;
  *static_cast<cudaStream_t*>(stream) = stub.stream;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 threads, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, threads, arguments, shared, stream);
}

// Errors and devices.

cudaError_t cudaGetLastError() {
  const cudaError_t noted = std::exchange(last, cudaSuccess);
  return all().broken != cudaSuccess ? all().broken : noted;
}
cudaError_t cudaPeekAtLastError() { return all().broken != cudaSuccess ? all().broken : last; }
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchOutOfResources:
      return "cudaErrorLaunchOutOfResources";
    case cudaErrorUnknown:
      return "cudaErrorUnknown";
    default:
      return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t) { return "an error of the test"; }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = settings().driver;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](state& s) {
    *count = s.shape.gpus;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* gpu) {
  return call("cudaGetDevice", [&](state&) {
    *gpu = current;
    return cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int gpu) {
  return call("cudaSetDevice", [&](state& s) {
    if (gpu < 0 || gpu >= s.shape.gpus)
      return misuse("cudaSetDevice: there is no GPU " + std::to_string(gpu), cudaErrorInvalidDevice);
    current = gpu;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](state& s) {
    for (auto& [handle, l] : s.lanes)
      if (l->gpu == current && l->captured) {
        l->captured->valid = false;
        return misuse("cudaDeviceSynchronize while a stream of the GPU is captured", cudaErrorStreamCaptureUnsupported);
      }
    for (auto& [handle, l] : s.lanes)
      if (l->gpu == current && !run_all(*l)) return cudaErrorNotReady;
    if (const auto at = s.legacy.find(current); at != s.legacy.end()) run_all(*at->second);
    return s.broken;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int gpu) {
  return call("cudaDeviceGetAttribute", [&](state& s) {
    if (gpu < 0 || gpu >= s.shape.gpus)
      return misuse("cudaDeviceGetAttribute: there is no GPU " + std::to_string(gpu), cudaErrorInvalidDevice);
    if (which == cudaDevAttrMultiProcessorCount) *value = 108;
    else if (which == cudaDevAttrMaxGridDimX) *value = std::numeric_limits<int>::max();
    else return misuse("cudaDeviceGetAttribute: attribute " + std::to_string(which));
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int gpu, int other) {
  return call("cudaDeviceCanAccessPeer", [&](state& s) {
    if (gpu == other || gpu >= s.shape.gpus || other >= s.shape.gpus)
      return misuse("cudaDeviceCanAccessPeer: no two GPUs", cudaErrorInvalidDevice);
    *can = s.shape.peers;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags) {
  return call("cudaDeviceEnablePeerAccess", [&](state& s) {
    if (flags != 0 || other == current) return misuse("cudaDeviceEnablePeerAccess: flags, or the GPU itself");
    if (!s.shape.peers) return misuse("cudaDeviceEnablePeerAccess: there is no path", cudaErrorPeerAccessUnsupported);
    return s.paths.insert({current, other}).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
  });
}

// Memory.

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  return call("cudaMalloc", [&](state&) {
    const cudaError_t refused = unsafe("cudaMalloc");
    return refused != cudaSuccess ? refused : take(p, bytes, current, 0);
  });
}
cudaError_t cudaFree(void* p) {
  return call("cudaFree", [&](state& s) {
    if (const cudaError_t refused = unsafe("cudaFree"); refused != cudaSuccess) return refused;
    const cudaError_t status = give("cudaFree", p, false);
    return status != cudaSuccess ? status : s.broken;
  });
}
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned flags) {
  return call("cudaHostAlloc", [&](state&) {
    const cudaError_t refused = unsafe("cudaHostAlloc");
    return refused != cudaSuccess ? refused : take(p, bytes, -1, flags);
  });
}
cudaError_t cudaFreeHost(void* p) {
  return call("cudaFreeHost", [&](state&) {
    const cudaError_t refused = unsafe("cudaFreeHost");
    return refused != cudaSuccess ? refused : give("cudaFreeHost", p, true);
  });
}
cudaError_t cudaHostGetDevicePointer(void** to, void* p, unsigned flags) {
  return call("cudaHostGetDevicePointer", [&](state& s) {
    const auto at = s.blocks.find(static_cast<char*>(p));
    if (flags != 0 || at == s.blocks.end() || (at->second.flags & cudaHostAllocMapped) == 0)
      return misuse("cudaHostGetDevicePointer: not mapped");
    *to = p;
    return cudaSuccess;
  });
}
cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  return call("cudaMemset", [&](state& s) {
    if (const cudaError_t refused = unsafe("cudaMemset"); refused != cudaSuccess) return refused;
    if (const std::string why = trouble(p, bytes, current); !why.empty()) return misuse("cudaMemset: " + why);
    auto& l = s.legacy[current];
    if (!l) l = std::make_shared<lane>(), l->gpu = current;
    operation o;
    o.run = [=] { std::memset(p, value, bytes); };
    return put(*l, std::move(o));
  });
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&](state&) {
    lane* const l = find(stream);
    if (const cudaError_t wrong = wrong_device("cudaMemsetAsync", l); wrong != cudaSuccess) return wrong;
    if (const std::string why = trouble(p, bytes, l->gpu); !why.empty()) return misuse("cudaMemsetAsync: " + why);
    operation o;
    o.run = [=] { std::memset(p, value, bytes); };
    return put(*l, std::move(o));
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&](state&) {
    lane* const l = find(stream);
    if (const cudaError_t wrong = wrong_device("cudaMemcpyAsync", l); wrong != cudaSuccess) return wrong;
    switch (kind) {
      case cudaMemcpyHostToDevice:
        return put_copy("a copy to the GPU", *l, to, l->gpu, from, -1, bytes);
      case cudaMemcpyDeviceToHost:
        return put_copy("a copy to the host", *l, to, -1, from, l->gpu, bytes);
      case cudaMemcpyDeviceToDevice:
        return put_copy("a copy on the GPU", *l, to, l->gpu, from, l->gpu, bytes);
      default:
        return misuse("cudaMemcpyAsync: a kind that nobody should ask for");
    }
  });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_gpu, const void* from, int from_gpu, std::size_t bytes,
                                cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", [&](state&) {
    lane* const l = find(stream);
    if (const cudaError_t wrong = wrong_device("cudaMemcpyPeerAsync", l); wrong != cudaSuccess) return wrong;
    return put_copy("a copy between GPUs", *l, to, to_gpu, from, from_gpu, bytes);
  });
}

// Streams and events.

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&](state& s) {
    if (flags != cudaStreamNonBlocking) return misuse("a stream that waits for the default one");
    *to = new_handle<cudaStream_t>();
    auto l = std::make_shared<lane>();
    l->gpu = current;
    s.lanes[*to] = std::move(l);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&](state& s) {
    lane* const l = find(stream);
    if (l == nullptr || l->captured)
      return misuse("cudaStreamDestroy: no stream, or one that is captured", cudaErrorInvalidResourceHandle);
    run_all(*l);
    s.lanes.erase(stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&](state& s) {
    lane* const l = find(stream);
    if (l == nullptr) return misuse("cudaStreamSynchronize: there is no such stream", cudaErrorInvalidResourceHandle);
    if (l->captured) {
      l->captured->valid = false;
      return misuse("cudaStreamSynchronize: the stream is captured", cudaErrorStreamCaptureUnsupported);
    }
    return run_all(*l) ? s.broken : cudaErrorNotReady;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned flags) {
  return call("cudaStreamWaitEvent", [&](state& s) {
    lane* const l = find(stream);
    const auto at = s.events.find(handle);
    if (l == nullptr || at == s.events.end() || flags != 0)
      return misuse("cudaStreamWaitEvent: no such stream or event", cudaErrorInvalidResourceHandle);
    const event& e = at->second;
    if (e.captured || l->captured) {
      if (l->captured) l->captured->valid = false;
      return misuse("cudaStreamWaitEvent across the border of a capture", cudaErrorStreamCaptureIsolation);
    }
    if (!e.on) return cudaSuccess;
    operation o;
    o.after = e.on;
    o.upto = e.upto;
    return put(*l, std::move(o));
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](state& s) {
    if (flags != cudaEventDisableTiming) return misuse("an event that takes the time");
    *to = new_handle<cudaEvent_t>();
    s.events[*to].gpu = current;
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return call("cudaEventDestroy", [&](state& s) {
    return s.events.erase(handle) == 1
               ? cudaSuccess
               : misuse("cudaEventDestroy: there is no such event", cudaErrorInvalidResourceHandle);
  });
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  return call("cudaEventRecord", [&](state& s) {
    const auto& lanes = s.lanes;
    const auto l = lanes.find(stream);
    const auto at = s.events.find(handle);
    if (const cudaError_t wrong = wrong_device("cudaEventRecord", l == lanes.end() ? nullptr : l->second.get());
        wrong != cudaSuccess)
      return wrong;
    if (at == s.events.end() || at->second.gpu != l->second->gpu)
      return misuse("cudaEventRecord: no event of the stream's GPU", cudaErrorInvalidResourceHandle);
    at->second.captured = l->second->captured != nullptr;
    if (at->second.captured) return l->second->captured->valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
    at->second.on = l->second;
    at->second.upto = l->second->put;
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call("cudaEventSynchronize", [&](state& s) {
    const auto at = s.events.find(handle);
    if (at == s.events.end())
      return misuse("cudaEventSynchronize: there is no such event", cudaErrorInvalidResourceHandle);
    if (at->second.captured)
      return misuse("cudaEventSynchronize: the event is part of a capture", cudaErrorCapturedEvent);
    if (const cudaError_t refused = unsafe("cudaEventSynchronize"); refused != cudaSuccess) return refused;
    if (at->second.on && !run_until(*at->second.on, at->second.upto)) return cudaErrorNotReady;
    return s.broken;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call("cudaEventQuery", [&](state& s) {
    const auto at = s.events.find(handle);
    if (at == s.events.end()) return misuse("cudaEventQuery: there is no such event", cudaErrorInvalidResourceHandle);
    if (at->second.captured) return misuse("cudaEventQuery: the event is part of a capture", cudaErrorCapturedEvent);
    if (const cudaError_t refused = unsafe("cudaEventQuery"); refused != cudaSuccess) return refused;
    if (at->second.on && !run_until(*at->second.on, at->second.upto)) return cudaErrorNotReady;
    return s.broken;
  });
}

// Kernels and graphs.

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute which, int value) {
  return call("cudaFuncSetAttribute", [&](state& s) {
    if (!s.kernels.contains(kernel)) return misuse("cudaFuncSetAttribute: no kernel", cudaErrorInvalidDeviceFunction);
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        static_cast<std::size_t>(value) > most_shared)
      return misuse("cudaFuncSetAttribute: another attribute, or more shared memory than there is");
    if (!s.shape.code) return cudaErrorNoKernelImageForDevice;
    s.much_shared.insert({current, kernel});
    return cudaSuccess;
  });
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, const void* kernel) {
  return call("cudaFuncGetAttributes", [&](state& s) {
    if (!s.kernels.contains(kernel)) return misuse("cudaFuncGetAttributes: no kernel", cudaErrorInvalidDeviceFunction);
    if (!s.shape.code) return cudaErrorNoKernelImageForDevice;
    *to = {};
    to->ptxVersion = to->binaryVersion = 80;
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int, std::size_t,
                                                                   unsigned) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](state& s) {
    if (!s.kernels.contains(kernel))
      return misuse("cudaOccupancyMaxActiveBlocksPerMultiprocessor: no kernel", cudaErrorInvalidDeviceFunction);
    *blocks = 2;
    return cudaSuccess;
  });
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 threads, void** arguments, std::size_t shared,
                             cudaStream_t stream) {
  return call("cudaLaunchKernel", [&](state& s) {
    lane* const l = find(stream);
    if (const cudaError_t wrong = wrong_device("cudaLaunchKernel", l); wrong != cudaSuccess) return wrong;
    const auto at = s.kernels.find(kernel);
    if (at == s.kernels.end() || arguments == nullptr)
      return misuse("cudaLaunchKernel: no kernel", cudaErrorInvalidDeviceFunction);
    if (grid.x == 0 || grid.x > 0x7FFFFFFFu || grid.y != 1 || grid.z != 1 || threads.x == 0 ||
        threads.x * threads.y * threads.z > 1024)
      return misuse(
          "cudaLaunchKernel: " + std::to_string(grid.x) + " blocks of " + std::to_string(threads.x) + " threads",
          cudaErrorInvalidConfiguration);
    if (shared > usual_shared && !s.much_shared.contains({current, kernel}))
      return misuse("cudaLaunchKernel: " + std::to_string(shared) + " bytes of shared memory were not asked for");
    if (!s.shape.code) return cudaErrorNoKernelImageForDevice;
    operation o;
    o.started = std::make_shared<launch>(launch{at->second.name, l->gpu, grid.x, threads.x, shared});
    if (runner() != nullptr) o.run = run_of(at->second.binary, o.started, arguments);
    return put(*l, std::move(o));
  });
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* kernel, void** arguments) {
  return cudaLaunchKernel(kernel, how->gridDim, how->blockDim, arguments, how->dynamicSmemBytes, how->stream);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](state&) {
    lane* const l = find(stream);
    if (l == nullptr || l->captured)
      return misuse("cudaStreamBeginCapture: no stream, or one that is captured already", cudaErrorIllegalState);
    l->captured = std::make_unique<recording>(recording{mode, std::this_thread::get_id(), true, {}});
    return cudaSuccess;
  });
}
// Whatever it returns, but for the wrong thread, the stream is not captured afterwards.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* to) {
  const cudaError_t status = call("cudaStreamEndCapture", [&](state& s) {
    *to = nullptr;
    lane* const l = find(stream);
    if (l == nullptr || !l->captured)
      return misuse("cudaStreamEndCapture: the stream is not captured", cudaErrorIllegalState);
    if (l->captured->mode != cudaStreamCaptureModeRelaxed && l->captured->thread != std::this_thread::get_id())
      return misuse("cudaStreamEndCapture: another thread began it", cudaErrorStreamCaptureWrongThread);
    const auto r = std::exchange(l->captured, nullptr);
    if (!r->valid) return cudaErrorStreamCaptureInvalidated;
    *to = new_handle<cudaGraph_t>();
    s.graphs[*to] = {l->gpu, std::move(r->work)};
    return cudaSuccess;
  });
  if (lane* const l = find(stream); l != nullptr && status != cudaErrorStreamCaptureWrongThread) l->captured = nullptr;
  return status;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* to, cudaGraph_t handle, unsigned long long flags) {
  return call("cudaGraphInstantiate", [&](state& s) {
    const auto at = s.graphs.find(handle);
    if (at == s.graphs.end() || flags != 0) return misuse("cudaGraphInstantiate: no graph");
    *to = new_handle<cudaGraphExec_t>();
    s.executables[*to] = at->second;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&](state& s) {
    lane* const l = find(stream);
    if (const cudaError_t wrong = wrong_device("cudaGraphLaunch", l); wrong != cudaSuccess) return wrong;
    const auto at = s.executables.find(handle);
    if (at == s.executables.end() || at->second.gpu != l->gpu) return misuse("cudaGraphLaunch: no graph of this GPU");
    if (l->captured) return misuse("cudaGraphLaunch: the stream is captured");
    for (const operation& o : at->second.work) put(*l, o);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return call("cudaGraphDestroy", [&](state& s) {
    return s.graphs.erase(handle) == 1 ? cudaSuccess : misuse("cudaGraphDestroy: no graph");
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  return call("cudaGraphExecDestroy", [&](state& s) {
    return s.executables.erase(handle) == 1 ? cudaSuccess : misuse("cudaGraphExecDestroy: no graph");
  });
}

}  // extern "C"
