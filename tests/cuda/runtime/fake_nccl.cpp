// tests/cuda/runtime/fake_nccl.cpp: the functions of NCCL that Sinter calls, without a GPU; see fake.hpp. Ranks are
// threads of this process, each with a GPU of the machine. Communicators do not block: a call is in progress at first,
// and comes to its stream when NCCL has been asked a few times. Work runs once the ranks that it concerns have got to
// it. What real NCCL would hang on or compute wrongly is a misuse.
#include "fake_nccl.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "fake.hpp"
#include "fake_inside.hpp"

using namespace fake_cuda;

namespace {

enum class kind { all_reduce, broadcast, all_gather, reduce_scatter, send, receive };

/// A rank's part of a call.
struct part {
  kind what;
  const char* from;
  char* to;
  std::size_t count;
  ncclDataType_t type;
  int op_or_rank;
  cudaStream_t stream;
  std::function<bool()> reach = nullptr;  ///< null before it is on the stream
  bool is_done = false;
};

/// The ranks of one id.
struct clique {
  std::vector<ncclComm*> ranks;
  int here = 0, finalized = 0;
  bool is_torn = false;                                                      ///< a rank was aborted
  std::vector<std::vector<std::shared_ptr<part>>> collectives;               ///< of each rank, in order
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<part>>> sent;     ///< from, to
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<part>>> awaited;  ///< the same
};

}  // namespace

struct ncclComm {
  std::shared_ptr<clique> of;
  int rank, gpu;
  int looks = 0;                                   ///< until what is in progress is over
  std::vector<std::shared_ptr<part>> in_progress;  ///< not on the stream yet
  bool is_finalized = false;
  ncclResult_t failure = ncclSuccess;
};

namespace {

struct library {
  std::map<std::string, std::shared_ptr<clique>> cliques;
  std::set<ncclComm*> living;
  std::map<int, ncclResult_t> failing;
  std::set<int> held;
  fake_nccl::ended ended;
  int ids = 0;
};
library& all() {
  static library& l = *new library;
  return l;
}
/// The group that this thread has open.
struct open_group {
  int depth = 0;
  ncclComm* of = nullptr;
  std::vector<std::shared_ptr<part>> parts;
};
thread_local open_group group;

ncclResult_t misuse(const std::string& what) {
  note(what);
  return ncclInvalidUsage;
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}
template <class T>
void join(char* to, const char* more, std::size_t n, bool largest) {
  for (std::size_t i = 0; i < n; ++i) {
    T a, b;
    std::memcpy(&a, to + i * sizeof(T), sizeof(T));
    std::memcpy(&b, more + i * sizeof(T), sizeof(T));
    if (!largest) a = static_cast<T>(a + b);
    else if constexpr (std::is_floating_point_v<T>) a = std::fmax(a, b);  // as NCCL: NaN loses
    else a = a < b ? b : a;
    std::memcpy(to + i * sizeof(T), &a, sizeof(T));
  }
}
template <class T, class ToFloat, class FromFloat>
void join_narrow(char* to, const char* more, std::size_t n, const ToFloat& wide, const FromFloat& narrow) {
  for (std::size_t i = 0; i < n; ++i) {
    T a, b;
    std::memcpy(&a, to + i * sizeof(T), sizeof(T));
    std::memcpy(&b, more + i * sizeof(T), sizeof(T));
    a = narrow(wide(a) + wide(b));
    std::memcpy(to + i * sizeof(T), &a, sizeof(T));
  }
}
void join(ncclDataType_t type, char* to, const char* more, std::size_t n, bool largest) {
  switch (type) {
    case ncclFloat32:
      return join<float>(to, more, n, largest);
    case ncclFloat64:
      return join<double>(to, more, n, largest);
    case ncclInt32:
      return join<std::int32_t>(to, more, n, largest);
    case ncclInt64:
      return join<std::int64_t>(to, more, n, largest);
    case ncclFloat16:
      if (largest) break;
      return join_narrow<__half>(
          to, more, n, [](__half x) { return __half2float(x); }, [](float x) { return __float2half(x); });
    case ncclBfloat16:
      if (largest) break;
      return join_narrow<__nv_bfloat16>(
          to, more, n, [](__nv_bfloat16 x) { return __bfloat162float(x); },
          [](float x) { return __float2bfloat16(x); });
    default:
      break;
  }
  note("NCCL: a reduction that the fake has not");
}

std::size_t bytes_of(const part& p) { return p.count * size_of(p.type); }
/// What a part reads and writes, in bytes.
std::size_t read_by(const part& p, const clique& c, int rank) {
  if (p.what == kind::receive || (p.what == kind::broadcast && p.op_or_rank != rank)) return 0;
  return bytes_of(p) * (p.what == kind::reduce_scatter ? c.ranks.size() : 1);
}
std::size_t written_by(const part& p, const clique& c) {
  if (p.what == kind::send) return 0;
  return bytes_of(p) * (p.what == kind::all_gather ? c.ranks.size() : 1);
}
std::string memory_trouble(const part& p, const ncclComm& c) {
  if (const std::size_t n = read_by(p, *c.of, c.rank); n > 0)
    if (const std::string why = trouble(p.from, n, c.gpu); !why.empty()) return why;
  if (const std::size_t n = written_by(p, *c.of); n > 0) return trouble(p.to, n, c.gpu);
  return {};
}

/// All parts of a collective are there, and their ranks have got to them.
void compute(const clique& c, const std::vector<part*>& parts) {
  const std::size_t ranks = parts.size(), bytes = bytes_of(*parts[0]);
  for (std::size_t r = 0; r < ranks; ++r) {
    const part& p = *parts[r];
    if (p.what != parts[0]->what || p.count != parts[0]->count || p.type != parts[0]->type ||
        p.op_or_rank != parts[0]->op_or_rank)
      return note("NCCL: ranks make different calls");
    if (const std::string why = memory_trouble(p, *c.ranks[r]); !why.empty()) return note("NCCL, when it ran: " + why);
  }
  std::vector<char> result;
  switch (parts[0]->what) {
    case kind::broadcast: {
      const part& root = *parts[static_cast<std::size_t>(parts[0]->op_or_rank)];
      result.assign(root.from, root.from + bytes);
      break;
    }
    case kind::all_gather:
      for (const part* p : parts) result.insert(result.end(), p->from, p->from + bytes);
      break;
    default: {
      const std::size_t n = parts[0]->count * (parts[0]->what == kind::reduce_scatter ? ranks : 1);
      result.assign(parts[0]->from, parts[0]->from + n * size_of(parts[0]->type));
      for (std::size_t r = 1; r < ranks; ++r)
        join(parts[0]->type, result.data(), parts[r]->from, n, parts[0]->op_or_rank == ncclMax);
    }
  }
  for (std::size_t r = 0; r < ranks; ++r)
    std::memcpy(parts[r]->to, result.data() + (parts[0]->what == kind::reduce_scatter ? r * bytes : 0),
                written_by(*parts[r], c));
}

/// Runs a part with its partners if all have got to it.
bool is_ready(clique& c, int rank, part& p, std::size_t number) {
  if (p.is_done) return true;
  if (c.is_torn) return false;
  if (p.what == kind::send || p.what == kind::receive) {
    const std::pair<int, int> way =
        p.what == kind::send ? std::pair{rank, p.op_or_rank} : std::pair{p.op_or_rank, rank};
    auto& sent = c.sent[way];
    auto& awaited = c.awaited[way];
    if (sent.empty() || awaited.empty() || (sent[0].get() != &p && awaited[0].get() != &p)) return false;
    const auto s = sent[0], a = awaited[0];
    if (!s->reach || !a->reach) return false;
    if (!(p.what == kind::send ? a : s)->reach()) return false;
    if (bytes_of(*s) != bytes_of(*a)) note("NCCL: a message and its receiver differ in length");
    else if (const std::string why = memory_trouble(*s, *c.ranks[static_cast<std::size_t>(way.first)]) +
                                     memory_trouble(*a, *c.ranks[static_cast<std::size_t>(way.second)]);
             !why.empty())
      note("NCCL, when it ran: " + why);
    else std::memcpy(a->to, s->from, bytes_of(*s));
    s->is_done = a->is_done = true;
    sent.pop_front();
    awaited.pop_front();
    return true;
  }
  std::vector<part*> parts;
  for (std::size_t r = 0; r < c.ranks.size(); ++r) {
    if (c.collectives[r].size() <= number || !c.collectives[r][number]->reach) return false;
    part* const other = c.collectives[r][number].get();
    if (static_cast<int>(r) != rank && !other->reach()) return false;
    parts.push_back(other);
  }
  if (c.is_torn) return false;
  if (p.is_done) return true;
  compute(c, parts);
  for (part* one : parts) one->is_done = true;
  return true;
}

/// Puts the parts of a group on their stream, as one piece of work.
void put_on_stream(ncclComm& c) {
  const auto parts = std::exchange(c.in_progress, {});
  if (parts.empty()) return;
  const auto of = c.of;
  const int rank = c.rank;
  auto& own = of->collectives[static_cast<std::size_t>(rank)];
  std::vector<std::size_t> numbers;
  for (const auto& p : parts) {
    numbers.push_back(own.size());
    if (p->what == kind::send) of->sent[{rank, p->op_or_rank}].push_back(p);
    else if (p->what == kind::receive) of->awaited[{p->op_or_rank, rank}].push_back(p);
    else own.push_back(p);
  }
  const auto ready = [of, rank, parts, numbers, handle = &c] {
    if (!all().living.contains(handle)) return true;  // aborted: it ends, and has written what it liked
    for (const ncclComm* one : of->ranks)
      if (all().held.contains(one->gpu)) return false;
    bool is = true;
    for (std::size_t i = 0; i < parts.size(); ++i) is = is_ready(*of, rank, *parts[i], numbers[i]) && is;
    return is;
  };
  std::function<bool()> reach;
  if (!put_shared_work("nccl", parts[0]->stream, ready, [] {}, reach)) {
    c.failure = ncclUnhandledCudaError;
    return;
  }
  for (const auto& p : parts) p->reach = reach;
}

/// Has the machine to itself; what is wrong with a use of the communicator, or success.
class entered {
 public:
  entered(const char* function, ncclComm* c) {
    if (begin_library_call(function, lock_) != CUBLAS_STATUS_SUCCESS) result = ncclUnhandledCudaError;
    else if (c != nullptr && !all().living.contains(c)) result = misuse(std::string(function) + ": no communicator");
  }
  ncclResult_t result = ncclSuccess;

 private:
  std::unique_lock<std::mutex> lock_;
};

ncclResult_t begin_part(const char* function, ncclComm* c, const part& p) {
  const entered in(function, c);
  if (in.result != ncclSuccess) return in.result;
  if (c->of->here < static_cast<int>(c->of->ranks.size()) || c->looks > 0)
    return misuse(std::string(function) + ": the communicator is in progress");
  if (c->is_finalized) return misuse(std::string(function) + ": the communicator is finalized");
  if (current_gpu() != c->gpu) return misuse(std::string(function) + ": another GPU is the current one");
  if (const std::string why = memory_trouble(p, *c); !why.empty()) return misuse(std::string(function) + ": " + why);
  if (group.depth == 0) return misuse(std::string(function) + " outside of a group");  // Sinter always opens one
  if (group.of != nullptr && group.of != c) return misuse("one group for two communicators");
  group.of = c;
  group.parts.push_back(std::make_shared<part>(p));
  return ncclSuccess;
}

}  // namespace

namespace fake_nccl {

void fail_soon(int gpu, ncclResult_t error) {
  const entered in("fail_soon", nullptr);
  all().failing[gpu] = error;
}
void hold_work(int gpu, bool held) {
  const entered in("hold_work", nullptr);
  if (held) all().held.insert(gpu);
  else all().held.erase(gpu);
}
std::size_t living() {
  const entered in("living", nullptr);
  return all().living.size();
}
ended take_ended() {
  const entered in("take_ended", nullptr);
  return std::exchange(all().ended, {});
}

}  // namespace fake_nccl

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "an NCCL error of the test"; }
const char* ncclGetLastError(ncclComm_t) { return "more of it"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const entered in("ncclGetUniqueId", nullptr);
  if (in.result != ncclSuccess) return in.result;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "id %d", ++all().ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* to, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const entered in("ncclCommInitRankConfig", nullptr);
  if (in.result != ncclSuccess) return in.result;
  if (config == nullptr || config->blocking != 0) return misuse("ncclCommInitRankConfig: it may block for ever");
  auto& c = all().cliques[id.internal];
  if (c == nullptr) {
    c = std::make_shared<clique>();
    c->ranks.resize(static_cast<std::size_t>(size));
    c->collectives.resize(static_cast<std::size_t>(size));
  }
  if (c->ranks.size() != static_cast<std::size_t>(size) || rank < 0 || rank >= size ||
      c->ranks[static_cast<std::size_t>(rank)] != nullptr)
    return misuse("ncclCommInitRankConfig: size or rank");
  *to = new ncclComm{c, rank, current_gpu(), 3, {}};
  for (ncclComm* other : c->ranks)
    if (other != nullptr && other->gpu == (*to)->gpu) other->failure = (*to)->failure = ncclInvalidUsage;
  c->ranks[static_cast<std::size_t>(rank)] = *to;
  ++c->here;
  all().living.insert(*to);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t* error) {
  const entered in("ncclCommGetAsyncError", c);
  if (in.result != ncclSuccess) return in.result;
  const int size = static_cast<int>(c->of->ranks.size());
  *error = c->failure;
  if (c->failure != ncclSuccess) return ncclSuccess;
  *error = ncclInProgress;
  if (c->of->here < size || (c->is_finalized && c->of->finalized < size)) return ncclSuccess;
  if (const auto at = all().failing.find(c->gpu); at != all().failing.end()) {
    *error = c->failure = at->second;
    all().failing.erase(at);
    return ncclSuccess;
  }
  if (c->looks > 0 && --c->looks > 0) return ncclSuccess;
  put_on_stream(*c);
  *error = c->failure;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c) {
  const entered in("ncclCommFinalize", c);
  if (in.result != ncclSuccess) return in.result;
  if (c->is_finalized || c->of->is_torn) return misuse("ncclCommFinalize: twice, or after a rank was aborted");
  c->is_finalized = true;
  ++c->of->finalized;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t c) {
  const entered in("ncclCommDestroy", c);
  if (in.result != ncclSuccess) return in.result;
  if (!c->is_finalized || c->of->finalized < static_cast<int>(c->of->ranks.size()))
    return misuse("ncclCommDestroy: it waits for other ranks");
  all().living.erase(c);
  ++all().ended.destroyed;
  return ncclSuccess;  // the handle stays, so that no new one has its address
}
ncclResult_t ncclCommAbort(ncclComm_t c) {
  const entered in("ncclCommAbort", c);
  if (in.result != ncclSuccess) return in.result;
  c->of->is_torn = true;
  all().living.erase(c);
  ++all().ended.aborted;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  const entered in("ncclGroupEnd", nullptr);
  if (--group.depth > 0) return ncclSuccess;
  ncclComm* const c = std::exchange(group.of, nullptr);
  auto parts = std::exchange(group.parts, {});
  if (in.result != ncclSuccess || c == nullptr) return in.result;
  c->in_progress = std::move(parts);
  c->looks = 3;
  return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t stream) {
  return begin_part("ncclAllReduce", c,
                    {kind::all_reduce, static_cast<const char*>(from), static_cast<char*>(to), n, type, op, stream});
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t n, ncclDataType_t type, int root, ncclComm_t c,
                           cudaStream_t stream) {
  return begin_part("ncclBroadcast", c,
                    {kind::broadcast, static_cast<const char*>(from), static_cast<char*>(to), n, type, root, stream});
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t n, ncclDataType_t type, ncclComm_t c,
                           cudaStream_t stream) {
  return begin_part("ncclAllGather", c,
                    {kind::all_gather, static_cast<const char*>(from), static_cast<char*>(to), n, type, 0, stream});
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t c, cudaStream_t stream) {
  return begin_part(
      "ncclReduceScatter", c,
      {kind::reduce_scatter, static_cast<const char*>(from), static_cast<char*>(to), n, type, op, stream});
}
ncclResult_t ncclSend(const void* from, std::size_t n, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t stream) {
  return begin_part("ncclSend", c, {kind::send, static_cast<const char*>(from), nullptr, n, type, peer, stream});
}
ncclResult_t ncclRecv(void* to, std::size_t n, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t stream) {
  return begin_part("ncclRecv", c, {kind::receive, nullptr, static_cast<char*>(to), n, type, peer, stream});
}

}  // extern "C"
