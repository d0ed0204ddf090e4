import { type Clock, describeError, KeyedBackoff, KubelingError, type Random } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import { isPastLimit, isWaiting } from './csi-attach.ts';
import { isDriverMissing } from './csi-client.ts';
import type { CsiVolume } from './csi-request.ts';

export interface CsiAttemptsDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** The node has as many volumes of the driver as it can have, though nobody knew. */
  readonly limitReached: (driver: string) => void;
}

/** As long as pods wait for volumes at all before they say so. */
const fullForMs = 123_000;
const retry = { baseMs: 500, maxMs: 122_000 };

/** How it went to show pods their volumes: what failed is not tried again too soon, nor later than its driver comes. */
export class CsiAttempts {
  readonly #clock: Clock;
  readonly #limitReached: (driver: string) => void;
  readonly #backoff: KeyedBackoff;
  /** Why the last attempt failed, and at which driver. */
  readonly #failed = new Map<string, { readonly error: KubelingError; readonly driver: string }>();
  /** Since when there has been no room on this node. */
  readonly #fullSince = new Map<string, number>();
  readonly #waiting = new Map<string, Set<PodUid>>();

  constructor(deps: CsiAttemptsDeps) {
    this.#clock = deps.clock;
    this.#limitReached = deps.limitReached;
    this.#backoff = new KeyedBackoff({ policy: retry, random: deps.random });
  }

  /** How many drivers pods wait for. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Rejects with what was wrong the last time while it is too soon for another, and with the time of the next one. */
  async run<T>(
    uid: PodUid,
    { name, driver }: Pick<CsiVolume, 'name' | 'driver'>,
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    this.#rejectTooEarly(uid, name);
    try {
      const result = await work();
      this.#forget(keyOf(uid, name));
      return result;
    } catch (error) {
      signal.throwIfAborted();
      const told = this.#recordFailure(uid, name, driver, error);
      if (isPastLimit(told)) this.#limitReached(driver);
      throw told;
    }
  }

  #rejectTooEarly(uid: PodUid, volume: string): void {
    const attempt = keyOf(uid, volume);
    const failed = this.#failed.get(attempt);
    if (failed !== undefined && this.#backoff.remainingMs(attempt, { nowMs: this.#clock.monotonicMs() }) > 0)
      throw failed.error;
  }

  /** The error with the time from which it is tried again. */
  #recordFailure(uid: PodUid, volume: string, driver: string, error: unknown): unknown {
    if (isPastLimit(error) && this.#hasWaited(uid, volume) === 'briefly')
      return new KubelingError('VOLUME_UNUSABLE', error.message, { details: error.details });
    if (isWaiting(error)) return error;
    if (isDriverMissing(error)) {
      this.#waiting.set(driver, (this.#waiting.get(driver) ?? new Set()).add(uid));
      return error;
    }
    const attempt = keyOf(uid, volume);
    const nowMs = this.#clock.monotonicMs();
    const retryAtMs = nowMs + this.#backoff.fail(attempt, { nowMs });
    const details = { ...(error instanceof KubelingError ? error.details : {}), retryAtMs };
    const told = new KubelingError('VOLUME_UNUSABLE', describeError(error), { details });
    this.#failed.set(attempt, { error: told, driver });
    return told;
  }

  /** Others may have to be detached first; a node that stays full does not keep the pod. */
  #hasWaited(uid: PodUid, volume: string): 'briefly' | 'enough' {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#fullSince.get(keyOf(uid, volume)) ?? nowMs;
    this.#fullSince.set(keyOf(uid, volume), sinceMs);
    return nowMs - sinceMs < fullForMs ? 'briefly' : 'enough';
  }

  /** Answers who waits for the driver: all may try again at once. */
  driverRegistered(driver: string): Iterable<PodUid> {
    for (const [key, failed] of [...this.#failed]) if (failed.driver === driver) this.#forget(key);
    const waiting = this.#waiting.get(driver) ?? [];
    this.#waiting.delete(driver);
    return waiting;
  }

  forgetPod(uid: PodUid): void {
    for (const [driver, pods] of [...this.#waiting])
      if (pods.delete(uid) && pods.size === 0) this.#waiting.delete(driver);
    for (const key of [...this.#failed.keys(), ...this.#fullSince.keys()])
      if (key.startsWith(keyOf(uid, ''))) this.#forget(key);
  }

  #forget(attempt: string): void {
    this.#failed.delete(attempt);
    this.#fullSince.delete(attempt);
    this.#backoff.delete(attempt);
  }
}

function keyOf(uid: PodUid, volume: string): string {
  return `${uid}/${volume}`;
}
