// tests/cuda/runtime/ptx.cpp: see ptx.hpp.
#include "ptx.hpp"

#include "ptx_reader.hpp"

namespace ptx {

module::module(const std::string& text) : in_(std::make_unique<contents>()) { reader(*in_, text); }
module::~module() = default;

std::size_t module::parameter_bytes(const std::string& kernel) const {
  const auto found = in_->functions.find(kernel);
  if (found == in_->functions.end()) refuse("there is no kernel " + kernel);
  return found->second.kernel_bytes;
}

void module::run(const std::string& kernel, const grid& shape, const void* parameters, const std::function<span(std::uintptr_t)>& memory) const {
  const function& f = in_->functions.at(kernel);
  machine m;
  m.kernel_parameters = static_cast<const char*>(parameters);
  m.kernel_bytes = f.kernel_bytes;
  m.blocks = shape.blocks;
  m.threads = shape.threads;
  m.memory = &memory;
  for (const auto& [name, values] : in_->variables)
    m.own.push_back({reinterpret_cast<std::uintptr_t>(values.data()), reinterpret_cast<std::uintptr_t>(values.data()) + values.size()});
  for (const auto& [name, g] : in_->functions)
    for (const instruction& i : g.code) i.seen = {};  // what was memory may have been given back
  std::vector<thread> threads(shape.threads);
  m.uses.resize(launched_shared + shape.shared_bytes);
  for (m.block = 0; m.block < shape.blocks; ++m.block) {
    m.shared.assign(launched_shared + shape.shared_bytes, static_cast<char>(garbage));
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
      for (std::size_t k = 0; k < threads.size(); ++k) {
        m.index = static_cast<unsigned>(m.block % 2 == 0 ? k : threads.size() - 1 - k);
        thread& t = threads[m.index];
        if (t.done) continue;
        m.t = &t;
        m.registers = t.registers.data() + t.frames.back().registers;
        m.stop = false;
        while (!m.stop) {
          frame& now = t.frames.back();
          const instruction& i = now.in->code[now.next++];
          if (i.guard >= 0 && ((m.registers[i.guard] & 1) != 0) == i.guard_is_false) continue;
          i.run(m, i);
        }
        if (t.done) continue;
        left = true;
        if (barrier != nullptr && barrier != t.waits) m.fail(*t.waits, "others wait at another barrier");
        barrier = t.waits;
      }
    }
  }
}

}  // namespace ptx
