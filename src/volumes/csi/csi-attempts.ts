import { type Clock, describeError, KeyedBackoff, KubelingError, type Random } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import { isPastLimit, isWaiting } from './csi-attach.ts';
import { isDriverMissing } from './csi-client.ts';
import type { CsiVolume } from './csi-request.ts';

export interface CsiAttemptsDeps {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Called when a volume was not attached because the attach limit of the driver was reached,
   * although the driver had reported a higher limit.
   */
  readonly limitReached: (driver: string) => void;
}

/**
 * Time after which the node rejects a pod whose volume cannot be attached because of the attach
 * limit; a little longer than pods wait for volumes.
 */
const fullForMs = 123_000;
const retry = { baseMs: 500, maxMs: 122_000 };

/**
 * Tracks mount attempts of CSI volumes: applies the back-off after failures, and allows an
 * immediate retry when the driver registers.
 */
export class CsiAttempts {
  readonly #clock: Clock;
  readonly #limitReached: (driver: string) => void;
  readonly #backoff: KeyedBackoff;
  /** Error of the last failed attempt with its driver, by pod and volume. */
  readonly #failed = new Map<string, { readonly error: KubelingError; readonly driver: string }>();
  /** Time since which the attach limit has been reached, by pod and volume. */
  readonly #fullSince = new Map<string, number>();
  readonly #waiting = new Map<string, Set<PodUid>>();

  constructor(deps: CsiAttemptsDeps) {
    this.#clock = deps.clock;
    this.#limitReached = deps.limitReached;
    this.#backoff = new KeyedBackoff({ policy: retry, random: deps.random });
  }

  /** Number of drivers that pods wait for. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Runs a mount attempt. During the back-off it rejects with the last error and the time of the
   * next attempt.
   */
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
      const reported = this.#recordFailure(uid, name, driver, error);
      if (isPastLimit(reported)) this.#limitReached(driver);
      throw reported;
    }
  }

  #rejectTooEarly(uid: PodUid, volume: string): void {
    const attempt = keyOf(uid, volume);
    const failed = this.#failed.get(attempt);
    if (failed !== undefined && this.#backoff.remainingMs(attempt, { nowMs: this.#clock.monotonicMs() }) > 0)
      throw failed.error;
  }

  /** Records the failure and returns the error with the time of the next attempt. */
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
    const reported = new KubelingError('VOLUME_UNUSABLE', describeError(error), { details });
    this.#failed.set(attempt, { error: reported, driver });
    return reported;
  }

  /**
   * Returns `enough` when the pod has waited long enough for other volumes to be detached, so that
   * the node rejects the pod.
   */
  #hasWaited(uid: PodUid, volume: string): 'briefly' | 'enough' {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#fullSince.get(keyOf(uid, volume)) ?? nowMs;
    this.#fullSince.set(keyOf(uid, volume), sinceMs);
    return nowMs - sinceMs < fullForMs ? 'briefly' : 'enough';
  }

  /** Returns the pods that wait for the driver and ends their back-off. */
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
