// sinter/nn/place.hpp: where in a model a forward failed: "3.block1.conv2".
#pragma once

#include <string>

#include "sinter/nn/member.hpp"

namespace sinter::nn::detail {

template <class M>
inline constexpr char type_mark = 0;  ///< its address tells types apart

/// A shape_error that has left the forward of a module. Each module that it passes through knows its members by their
/// address, and puts the name of the one it came from before the path.
class placed_error final : public shape_error {
 public:
  placed_error(const std::string& message, std::string in_path, const void* module, const void* type);

  std::string path;    ///< from the module at `where` to the one that failed
  std::string reason;  ///< what the failed operation said
  const void* where;
  const void* mark;
};

#if SINTER_DEFINES
SINTER_SHARED_COLD placed_error::placed_error(const std::string& message, std::string in_path, const void* module,
                                              const void* type)
    : shape_error(in_path.empty() ? message : sinter::detail::joined({"in module ", in_path, ": ", message})),
      path(std::move(in_path)),
      reason(message),
      where(module),
      mark(type) {}
#endif  // SINTER_DEFINES

/// The path from m to the module at an address, of the type that mark stands for; empty if there is none.
template <class M>
SINTER_COLD std::string path_to(const M& m, const void* where, const void* mark, const member_name* outer = nullptr) {
  std::string path;
  M::visit(
      [&](sinter::detail::text_piece own, const auto& member) {
        using X = bare<decltype(member)>;
        if constexpr (is_module<X>) {
          if (!path.empty()) return;
          const member_name name{outer, own};
          if (&member == where && mark == &type_mark<X>) path = name.text();
          else path = path_to(member, where, mark, &name);
        }
      },
      m);
  return path;
}

/// The error on its way out of m.
template <class M>
[[noreturn]] SINTER_COLD void rethrow_from(const M& m, const placed_error& e) {
  std::string path = path_to(m, e.where, e.mark);
  if (!path.empty() && !e.path.empty()) path += '.';
  throw placed_error(e.reason, path + e.path, &m, &type_mark<M>);
}
template <class M>
[[noreturn]] SINTER_COLD void rethrow_from(const M& m, const shape_error& e) {
  throw placed_error(e.what(), {}, &m, &type_mark<M>);
}

}  // namespace sinter::nn::detail
