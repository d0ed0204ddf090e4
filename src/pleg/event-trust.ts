import { Backoff, type Clock, LruMap, type Random, type Timer } from '../lib/index.ts';
import type { ItemChange } from './lifecycle-events.ts';
import type { RuntimeHint } from './runtime-events.ts';

export interface EventTrustDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Called when the trust in events changes, with the reason. */
  readonly changed: (state: TrustState, why: string) => void;
  /** Called when an expected or provoked event did not arrive on a trusted stream. */
  readonly missed: (why: string) => void;
}

export type TrustState = 'trusted' | 'untrusted';

type What = RuntimeHint['what'];

/** The maximum delay of an event after a relist has found the change that the event announces. */
const lateMs = 2_000;
/** The time limit for a provoked event to arrive, including the runtime's time to accept it. */
const proofLateMs = 10_000;
const proofId = '';
/** The maximum number of containers with recorded events; more than a node has. */
const maxContainers = 10_000;

/**
 * Determines whether runtime events are reliable, by comparing them with changes found by relists:
 *
 *               a change with its event, or a provoked event
 *     untrusted ───────────────────────────────────────────> trusted
 *         ^                                                     │
 *         └─────────────────────────────────────────────────────┘
 *           a change without an event, a missing provoked event,
 *           a broken stream, no proof for a long time
 *
 * After a missed event the trust returns only after a back-off, because a stream that loses some
 * events is unreliable even if it delivers others.
 */
export class EventTrust implements Disposable {
  readonly #deps: EventTrustDeps;
  readonly #backoff: Backoff;
  /** The events received for each container on the current stream. */
  readonly #announced = new LruMap<string, Set<What>>({ capacity: maxContainers });
  /** Events that must arrive soon, because a relist has observed the change that they announce. */
  readonly #expected = new Map<string, { readonly needs: readonly What[]; readonly dueMs: number }>();
  #state: TrustState = 'untrusted';
  #notBeforeMs = 0;
  #lastProofMs: number | undefined;
  /** The timestamp from which events are known to arrive; earlier changes may have no event. */
  #reliableSince: number | undefined;
  #timer: Timer | undefined;

  constructor(deps: EventTrustDeps) {
    this.#deps = deps;
    const policy = { baseMs: 60_000, maxMs: 30 * 60_000, resetAfterMs: 2 * 3_600_000 };
    this.#backoff = new Backoff(policy, deps.random);
  }

  get state(): TrustState {
    return this.#state;
  }

  /** The time of the last event that proved that events arrive, in monotonic milliseconds. */
  get lastProofMs(): number | undefined {
    return this.#lastProofMs;
  }

  /**
   * Called when a stream is opened or has ended; events of the previous stream prove nothing about
   * the next one.
   */
  reset(why: string): void {
    this.#reliableSince = undefined;
    this.#lastProofMs = undefined;
    this.#announced.clear();
    this.#expected.clear();
    this.#arm();
    this.#setState('untrusted', why);
  }

  received({ containerId, what }: RuntimeHint): void {
    this.#reliableSince ??= this.#deps.clock.stamp();
    const id = what === 'proof' ? proofId : containerId;
    const before = this.#announced.get(id);
    if (what !== 'proof') this.#announced.set(id, (before ?? new Set()).add(what));
    const expected = this.#expected.get(id);
    if (what !== 'proof' && !expected?.needs.includes(what)) return;
    this.#expected.delete(id);
    this.#arm();
    this.#prove();
  }

  /**
   * Called with the changes that a relist found since the previous relist, and with the start
   * timestamp of the previous relist.
   */
  changed(changes: readonly ItemChange[], unchangedAt: number): void {
    const judged = this.#reliableSince !== undefined && unchangedAt > this.#reliableSince;
    for (const change of changes) this.#checkChange(change, judged);
    this.#arm();
  }

  /** Called when an event is provoked and must arrive. */
  expectProof(): void {
    if (!this.#expected.has(proofId)) this.#expect(proofId, ['proof'], proofLateMs);
    this.#arm();
  }

  /**
   * Called when the runtime could not be made to send the provoked event, which is then no longer
   * expected.
   */
  unexpectProof(): void {
    this.#expected.delete(proofId);
    this.#arm();
  }

  /**
   * Called when no event has proved for too long that events arrive. No event is known to be lost,
   * so the next expected or provoked event restores the trust.
   */
  expire(why: string): void {
    if (this.#state === 'untrusted') return;
    this.#setState('untrusted', why);
    this.#deps.missed(why);
  }

  [Symbol.dispose](): void {
    this.#expected.clear();
    this.#arm();
  }

  #checkChange(change: ItemChange, judged: boolean): void {
    const needs = announcementsOf(change);
    if (needs.length === 0) return;
    const heard = this.#announced.get(change.id);
    if (needs.some((what) => heard?.has(what))) this.#prove();
    else if (judged && this.#expected.size < maxContainers) this.#expect(change.id, needs, lateMs);
  }

  #expect(id: string, needs: readonly What[], withinMs: number): void {
    this.#expected.set(id, { needs, dueMs: this.#deps.clock.monotonicMs() + withinMs });
  }

  #prove(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#lastProofMs = nowMs;
    if (nowMs >= this.#notBeforeMs) this.#setState('trusted', 'events arrive');
  }

  #miss(id: string): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const wasTrusted = this.#state === 'trusted';
    const waitMs = wasTrusted ? this.#backoff.fail(nowMs) : lateMs;
    this.#notBeforeMs = Math.max(this.#notBeforeMs, nowMs + waitMs);
    const why = id === proofId ? 'a provoked event did not arrive' : `a change of ${id} was not announced`;
    this.#setState('untrusted', why);
    if (wasTrusted) this.#deps.missed(why);
  }

  #setState(state: TrustState, why: string): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#deps.changed(state, why);
  }

  /** Sets one timer for the earliest deadline. */
  #arm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    let dueMs = Number.POSITIVE_INFINITY;
    for (const expected of this.#expected.values()) dueMs = Math.min(dueMs, expected.dueMs);
    if (dueMs === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#deps;
    this.#timer = clock.timer(dueMs - clock.monotonicMs(), () => this.#review());
  }

  #review(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [id, { dueMs }] of [...this.#expected]) {
      if (dueMs > nowMs || !this.#expected.delete(id)) continue;
      this.#miss(id);
    }
    this.#arm();
  }
}

/**
 * The events that announce the change, of which one must have been received; empty for changes
 * without an event, such as a container that fails to start.
 */
function announcementsOf({ from, to }: ItemChange): readonly What[] {
  if (to === 'running') return ['started'];
  if (from !== 'running') return [];
  if (to === 'exited') return ['stopped'];
  return to === undefined ? ['stopped', 'removed'] : [];
}
