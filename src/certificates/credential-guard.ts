import { apiTime, type Clock, KubelingError, type Logger } from '../lib/index.ts';
import { isExpired, type KeyPair } from '../protocols/x509/index.ts';

export interface CredentialGuardDeps {
  readonly certificate: {
    held(): KeyPair | undefined;
    readonly serverAnswers: boolean;
    describe(): string;
  };
  readonly clock: Clock;
  readonly log: Logger;
}

const roundMs = 10_000;
const firstRoundMs = 1_000;
const longestWithoutMs = 5 * 60_000;

/**
 * Exits with CERTIFICATE_LOST when the node has lost its identity: its client certificate has
 * expired, or has been missing for five minutes, and the API server is reachable and issues none. A
 * restarted kubelet may use its bootstrap kubeconfig. While the server is unreachable, exiting
 * would gain nothing, and pods keep running.
 */
export async function guardCredentials(deps: CredentialGuardDeps, signal: AbortSignal): Promise<never> {
  const { certificate, clock, log } = deps;
  let lastSeenMs = clock.monotonicMs();
  let warned = '';
  for (;;) {
    await clock.sleep(certificate.held() === undefined ? firstRoundMs : roundMs, signal);
    const held = certificate.held();
    if (held !== undefined && !isExpired(held.leaf, clock.now())) {
      lastSeenMs = clock.monotonicMs();
      warned = '';
    }
    const why = lostReason(held, clock.now(), clock.monotonicMs() - lastSeenMs);
    if (why === undefined) continue;
    const message = `Cannot continue as ${why}, and the API server issues no new one: ${certificate.describe()}. Join the node again if its bootstrap token has expired too`;
    if (certificate.serverAnswers) throw new KubelingError('CERTIFICATE_LOST', message);
    if (warned !== why) log.warn(`Requests will fail until the API server is reachable, as ${why}`);
    warned = why;
  }
}

function lostReason(held: KeyPair | undefined, nowMs: number, withoutMs: number): string | undefined {
  if (held === undefined) {
    return withoutMs > longestWithoutMs ? 'there is no client certificate' : undefined;
  }
  return isExpired(held.leaf, nowMs)
    ? `the client certificate in ${held.from} expired ${apiTime(held.leaf.notAfterMs)}`
    : undefined;
}
