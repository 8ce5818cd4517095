// tests/cuda/runtime/ptx.cpp: see ptx.hpp.
#include "ptx.hpp"

#include "ptx_reader.hpp"

namespace ptx {

module::module(const std::string& text) :in_(std::make_unique<contents>()) { reader(*in_, text); }
module::~module() = default;

const std::vector<module::parameter>& module::parameters_of(const std::string& kernel) const {
  const auto found = in_->functions.find(kernel);
  if (found == in_->functions.end()) refuse("there is no kernel " + kernel);
  return found->second.parameters;
}

namespace {

/// Runs the thread up to where it waits, or to its end.
void run_thread(machine& m, thread& t) {
  m.turn_to(t);
  m.stop = false;
  t.waits = nullptr;
  while (!m.stop) {
    frame& now = t.frames.back();
    const instruction& i = now.in->code[now.next++];
    if (i.guard >= 0 && ((m.registers[i.guard] & 1) != 0) == i.guard_is_false) continue;
    i.run(m, i);
  }
}

/// Does what threads of a warp, the `count` from `first` on, wait to do together; false if there is nothing of the
/// kind.
bool work_together(machine& m, thread* first, std::size_t count) {
  const instruction* missing = nullptr;
  for (std::size_t k = 0; k < count; ++k) {
    const instruction* const i = first[k].waits;
    if (first[k].done || i == nullptr || i->together == nullptr) continue;
    m.turn_to(first[k]);
    const auto mask = m.get<std::uint32_t>(i->from[3]);
    thread* lanes[warp_threads] = {};
    bool all = (mask >> k & 1) != 0;
    for (std::size_t l = 0; l < count; ++l) {
      if ((mask >> l & 1) == 0 || first[l].done) continue;
      all = all && first[l].waits == i;
      lanes[l] = first + l;
    }
    if (!all) {
      missing = i;
      continue;
    }
    i->together(m, *i, lanes);
    for (thread* const t : lanes)
      if (t != nullptr) t->waits = nullptr;
    ++m.together;
    return true;
  }
  if (missing != nullptr) m.fail(*missing, "threads of the warp do not come to it");
  return false;
}

}  // namespace

void module::run(const std::string& kernel, const grid& shape, const void* parameters,
                 const std::function<span(std::uintptr_t)>& memory) const {
  const function& f = in_->functions.at(kernel);
  machine m;
  m.kernel_parameters = static_cast<const char*>(parameters);
  m.kernel_bytes = f.kernel_bytes;
  m.blocks = shape.blocks;
  m.threads = shape.threads;
  m.memory = &memory;
  for (const auto& [name, values] : in_->variables)
    m.own.push_back({reinterpret_cast<std::uintptr_t>(values.data()),
                     reinterpret_cast<std::uintptr_t>(values.data()) + values.size()});
  for (const auto& [name, g] : in_->functions)
    for (const instruction& i : g.code) i.seen = {};  // what was memory may have been given back
  std::vector<thread> threads(shape.threads);
  for (unsigned k = 0; k < shape.threads; ++k) threads[k].number = k;
  m.uses.resize(in_->shared_bytes + shape.shared_bytes);
  for (m.block = 0; m.block < shape.blocks; ++m.block) {
    m.shared.assign(in_->shared_bytes + shape.shared_bytes, static_cast<char>(garbage));
    for (thread& t : threads) {
      t.frames.assign(1, frame{&f, 0, 0, 0, 0});
      t.registers.assign(static_cast<std::size_t>(f.registers), 0xCBCBCBCBCBCBCBCB);
      t.parameters.assign(f.call_bytes, static_cast<char>(garbage));
      t.local.assign(f.local_bytes, static_cast<char>(garbage));
      t.copies.clear();
      t.done = false;
    }
    for (bool left = true; left; ++m.barriers) {
      left = false;
      const instruction* barrier = nullptr;
      const std::size_t warps = (threads.size() + warp_threads - 1) / warp_threads;
      for (std::size_t w = 0; w < warps; ++w) {
        const std::size_t first = (m.block % 2 == 0 ? w : warps - 1 - w) * warp_threads,
                          count = std::min<std::size_t>(warp_threads, threads.size() - first);
        for (std::size_t k = 0; k < count; ++k) threads[first + k].waits = nullptr;  // at the barrier before
        do {
          for (std::size_t k = 0; k < count; ++k) {
            thread& t = threads[first + (m.block % 2 == 0 ? k : count - 1 - k)];
            if (!t.done && t.waits == nullptr) run_thread(m, t);
          }
        } while (work_together(m, threads.data() + first, count));
        for (std::size_t k = 0; k < count; ++k) {
          const thread& t = threads[first + k];
          if (t.done) continue;
          left = true;
          m.t = &threads[first + k];
          if (barrier != nullptr && barrier != t.waits) m.fail(*t.waits, "others wait at another barrier");
          barrier = t.waits;
        }
      }
      if (barrier != nullptr && barrier->at_barrier != nullptr) barrier->at_barrier(m, *barrier, threads);
    }
  }
}

}  // namespace ptx
