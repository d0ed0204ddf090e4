import { apiTime, describeError } from '../lib/index.ts';
import type { CsrState } from './signing-request.ts';

/** What is being done for the next certificate. */
export type Progress =
  | { readonly kind: 'idle' }
  /** What it has to say is not known. */
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'settling'; readonly why: string }
  | { readonly kind: 'requesting' }
  | {
      readonly kind: 'requested';
      readonly csr: string;
      readonly sinceMs: number;
      readonly state: CsrState['kind'];
    }
  | { readonly kind: 'failed'; readonly error: unknown; readonly failures: number };

/** For people who wonder why there is no certificate; empty when nothing is under way. */
export function describeProgress(progress: Progress): string {
  switch (progress.kind) {
    case 'idle':
      return '';
    case 'unknown':
      return `none can be asked for yet: ${progress.why}`;
    case 'settling':
      return `a new one is asked for soon, as ${progress.why}`;
    case 'requesting':
      return 'a new one is being asked for';
    case 'requested':
      return describeRequest(progress);
    case 'failed':
      return `asking for a new one failed ${progress.failures} times: ${describeError(progress.error)}`;
  }
}

function describeRequest({ csr, sinceMs, state }: Extract<Progress, { kind: 'requested' }>): string {
  const since = apiTime(sinceMs);
  return state === 'pending'
    ? `the certificate signing request ${csr} waits for approval since ${since}: approve it with "kubectl certificate approve ${csr}"`
    : `the certificate signing request ${csr} of ${since} is approved and waits for its signer`;
}
