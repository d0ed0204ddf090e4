import type { X509Certificate } from 'node:crypto';

/** When a certificate and all its issuers are valid, in milliseconds since 1970. */
export interface ValidityPeriod {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The chain is trusted, and how long it is valid. */
export type ChainResult =
  | { readonly kind: 'vouched'; readonly time: ValidityPeriod }
  | { readonly kind: 'stranger'; readonly why: string };

const clientAuth = '1.3.6.1.5.5.7.3.2';
const anyUse = '2.5.29.37.0';
/** Longer than any reasonable chain; the client chooses what it sends. */
const maxLinks = 8;
const maxSignatureChecks = 64;

/**
 * Whether a client certificate chains to one of the roots at this time, using the intermediates
 * that the client sent. It does not replace the check of the TLS handshake, which is stricter: it
 * repeats it with the current roots and time.
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
  /** Certificates can sign each other in many ways; the number of checked paths is limited. */
  #checksLeft = maxSignatureChecks;

  constructor(intermediates: readonly X509Certificate[], roots: readonly X509Certificate[], nowMs: number) {
    this.#between = intermediates;
    this.#roots = roots;
    this.#nowMs = nowMs;
  }

  /** How long the certificate and its issuers are valid; undefined when they are not. */
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

/** An authority may be limited to some uses; without such an extension it is valid for all. */
function allowsClientAuth({ keyUsage }: X509Certificate): boolean {
  // Node's keyUsage contains the extended uses; undefined without the extension.
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
