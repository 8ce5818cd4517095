// sinter/ranks/socket/aes_gcm.hpp: AES-256-GCM by OpenSSL, which encrypts what goes over a connection.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_OPENSSL
#error \
    "sinter: sinter/ranks/socket/aes_gcm.hpp needs OpenSSL 3: compile with -DSINTER_WITH_OPENSSL=1 and link with -lcrypto"
#endif

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sinter/ranks/socket/seal.hpp"

namespace sinter::detail {

/// One direction of a connection. Dworkin, "Recommendation for block cipher modes of operation: Galois/Counter Mode",
/// NIST SP 800-38D, 2007: the nonce is a number that no two records under the key share.
class aes_gcm final : public record_cipher {
 public:
  /// Errors: a trouble where OpenSSL has no AES-256-GCM.
  aes_gcm(const sha256_digest& key, bool encrypts) : context_(EVP_CIPHER_CTX_new()), encrypts_(encrypts) {
    require(context_ != nullptr &&
            EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, key.data(), nullptr, encrypts ? 1 : 0) == 1);
  }

  static std::unique_ptr<record_cipher> make(const sha256_digest& key, bool encrypts) {
    return std::make_unique<aes_gcm>(key, encrypts);
  }

  siphash_tag encrypt(std::uint64_t number, std::span<const std::byte> from, std::byte* to) override {
    siphash_tag tag;
    begin(number);
    update(from, to);
    int n = 0;
    require(EVP_EncryptFinal_ex(context_.get(), nullptr, &n) == 1 &&
            EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag.size()), tag.data()) == 1);
    return tag;
  }
  bool decrypt(std::uint64_t number, std::span<const std::byte> from, siphash_tag tag, std::byte* to) override {
    begin(number);
    update(from, to);
    require(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag.size()), tag.data()) == 1);
    int n = 0;
    return EVP_DecryptFinal_ex(context_.get(), nullptr, &n) == 1;
  }

 private:
  struct free_context {
    void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
  };
  SINTER_COLD static void require(bool well) {
    if (!well) throw trouble{communication_failure::backend, -1, "OpenSSL: AES-256-GCM does not work"};
  }
  void begin(std::uint64_t number) {
    std::array<std::uint8_t, 12> nonce{};
    for (std::size_t i = 0; i < 8; ++i) nonce[4 + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
    require(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data(), encrypts_ ? 1 : 0) == 1);
  }
  void update(std::span<const std::byte> from, std::byte* to) {
    int n = 0;
    require(EVP_CipherUpdate(context_.get(), reinterpret_cast<unsigned char*>(to), &n,
                             reinterpret_cast<const unsigned char*>(from.data()), static_cast<int>(from.size())) == 1);
  }

  std::unique_ptr<EVP_CIPHER_CTX, free_context> context_;
  bool encrypts_;
};

}  // namespace sinter::detail
