// sinter/nn/place.hpp: where in a model a forward failed: "3.block1.conv2".
#pragma once

#include <string>
#include <utility>

#include "sinter/nn/member.hpp"

namespace sinter::nn::detail {

/// A module apart from its type, as errors and summaries know it: one constant for each type, whose address tells types
/// apart.
struct module_code {
  struct visitor {
    virtual void submodule(sinter::detail::text_piece name, const void* module, const module_code& code) = 0;

   protected:
    ~visitor() = default;
  };
  /// Tells the submodules in the order of the list.
  void (*each_submodule)(const void* module, visitor& to);
};

template <class M>
SINTER_COLD void tell_submodules(const void* module, module_code::visitor& to);
template <class M>
inline constexpr module_code code_of{&tell_submodules<M>};

template <class M>
void tell_submodules(const void* module, module_code::visitor& to) {
  M::visit(
      [&to](sinter::detail::text_piece name, const auto& member) {
        using X = bare<decltype(member)>;
        if constexpr (is_module<X>) to.submodule(name, &member, code_of<X>);
      },
      *static_cast<const M*>(module));
}

/// A shape_error that has left the forward of a module. Each module that it passes through knows its members by their
/// address, and puts the name of the one it came from before the path.
class placed_error final : public shape_error {
 public:
  placed_error(const std::string& message, std::string in_path, const void* module, const module_code& type);

  std::string path;    ///< from the module at `where` to the one that failed
  std::string reason;  ///< what the failed operation said
  const void* where;
  const module_code* code;
};

/// The error on its way out of a module.
[[noreturn]] SINTER_SHARED_COLD void rethrow_from(const void* module, const module_code& code, const placed_error& e);
[[noreturn]] SINTER_SHARED_COLD void rethrow_from(const void* module, const module_code& code, const shape_error& e);

#if SINTER_DEFINES

SINTER_SHARED_COLD placed_error::placed_error(const std::string& message, std::string in_path, const void* module,
                                              const module_code& type)
    : shape_error(in_path.empty() ? message : sinter::detail::joined({"in module ", in_path, ": ", message})),
      path(std::move(in_path)),
      reason(message),
      where(module),
      code(&type) {}

/// Finds the path from a module to the one at an address, of the type that a code stands for; empty if there is none.
struct path_finder final : module_code::visitor {
  const placed_error& error;
  const member_name* outer = nullptr;
  std::string path;

  explicit path_finder(const placed_error& e) : error(e) {}
  void submodule(sinter::detail::text_piece own, const void* module, const module_code& code) override {
    if (!path.empty()) return;
    const member_name name{outer, own};
    if (module == error.where && &code == error.code) {
      path = name.text();
      return;
    }
    const member_name* const around = std::exchange(outer, &name);
    code.each_submodule(module, *this);
    outer = around;
  }
};

[[noreturn]] SINTER_SHARED_COLD void rethrow_from(const void* module, const module_code& code, const placed_error& e) {
  path_finder found(e);
  code.each_submodule(module, found);
  if (!found.path.empty() && !e.path.empty()) found.path += '.';
  throw placed_error(e.reason, found.path + e.path, module, code);
}
[[noreturn]] SINTER_SHARED_COLD void rethrow_from(const void* module, const module_code& code, const shape_error& e) {
  throw placed_error(e.what(), {}, module, code);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::nn::detail
