import type { X509Certificate } from 'node:crypto';

/** The period in which a certificate and all its issuers are valid, in milliseconds since 1970. */
export interface ValidityPeriod {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The result of a check: whether the chain is trusted, and how long it is valid. */
export type ChainResult =
  | { readonly kind: 'vouched'; readonly time: ValidityPeriod }
  | { readonly kind: 'stranger'; readonly why: string };

const clientAuth = '1.3.6.1.5.5.7.3.2';
const anyUse = '2.5.29.37.0';
/**
 * The maximum length of a chain. It is limited because the client chooses the certificates that it
 * sends; no reasonable chain is longer.
 */
const maxLinks = 8;
const maxSignatureChecks = 64;

/**
 * Whether a client certificate chains to one of the roots at this time, using the intermediates
 * that the client sent. The TLS handshake checks the certificate more strictly; this check repeats
 * it later with the current roots and time, and does not replace it.
 */
export function checkChain(
  presented: readonly X509Certificate[],
  roots: readonly X509Certificate[],
  nowMs: number,
): ChainResult {
  const [leaf, ...intermediates] = presented;
  if (leaf === undefined) return { kind: 'stranger', why: 'it shows no certificate' };
  const search = new ChainSearch(intermediates.slice(0, maxLinks), roots, nowMs);
  const time = search.validityOf(leaf, 0);
  return time === undefined
    ? { kind: 'stranger', why: 'no authority we trust vouches for it now, for a client' }
    : { kind: 'vouched', time };
}

class ChainSearch {
  readonly #between: readonly X509Certificate[];
  readonly #roots: readonly X509Certificate[];
  readonly #nowMs: number;
  /**
   * The remaining number of signature checks. It is limited, because certificates can sign each
   * other in many ways.
   */
  #checksLeft = maxSignatureChecks;

  constructor(intermediates: readonly X509Certificate[], roots: readonly X509Certificate[], nowMs: number) {
    this.#between = intermediates;
    this.#roots = roots;
    this.#nowMs = nowMs;
  }

  /**
   * The period in which the certificate and its issuers are valid; undefined when they are not
   * valid now.
   */
  validityOf(certificate: X509Certificate, depth: number): ValidityPeriod | undefined {
    const own = validTime(certificate);
    if (!isValidAt(own, this.#nowMs) || !allowsClientAuth(certificate)) return undefined;
    if (this.#roots.some((root) => root.raw.equals(certificate.raw))) return own;
    if (depth >= maxLinks) return undefined;
    for (const issuer of [...this.#roots, ...this.#between]) {
      if (!this.#issued(issuer, certificate)) continue;
      const above = this.validityOf(issuer, depth + 1);
      if (above !== undefined) return overlap(own, above);
    }
    return undefined;
  }

  #issued(issuer: X509Certificate, certificate: X509Certificate): boolean {
    if (!issuer.ca || issuer.raw.equals(certificate.raw) || !certificate.checkIssued(issuer)) return false;
    this.#checksLeft -= 1;
    return this.#checksLeft >= 0 && certificate.verify(issuer.publicKey);
  }
}

/**
 * Whether the extended key usage of a certificate allows client authentication; without the
 * extension it does.
 */
function allowsClientAuth({ keyUsage }: X509Certificate): boolean {
  // keyUsage of Node.js contains the extended key usages; undefined without the extension.
  const uses = keyUsage as readonly string[] | undefined;
  return uses === undefined || uses.includes(clientAuth) || uses.includes(anyUse);
}

function validTime({ validFromDate, validToDate }: X509Certificate): ValidityPeriod {
  return { fromMs: validFromDate.getTime(), untilMs: validToDate.getTime() };
}

export function isValidAt({ fromMs, untilMs }: ValidityPeriod, nowMs: number): boolean {
  return fromMs <= nowMs && nowMs <= untilMs;
}

function overlap(one: ValidityPeriod, other: ValidityPeriod): ValidityPeriod {
  return { fromMs: Math.max(one.fromMs, other.fromMs), untilMs: Math.min(one.untilMs, other.untilMs) };
}
