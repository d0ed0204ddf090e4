import { Backoff, type Clock, LruMap, type Random, type Timer } from '../lib/index.ts';
import type { ItemChange } from './lifecycle-events.ts';
import type { RuntimeHint } from './runtime-events.ts';

export interface EventTrustDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Told of every change of mind, with the reason. */
  readonly changed: (state: TrustState, why: string) => void;
  /** An event that should have come did not, or none that would show so, on a stream that was trusted until now. */
  readonly missed: (why: string) => void;
}

export type TrustState = 'trusted' | 'untrusted';

type What = RuntimeHint['what'];

/** An event may come a little after what it tells of was seen. */
const lateMs = 2_000;
/** From when it is asked for: the runtime has half of this to take it in. */
const proofLateMs = 10_000;
const proofId = '';
/** Containers whose events are remembered; more than any node has at a time. */
const maxContainers = 10_000;

/**
 * Judges whether events of the runtime really arrive, by comparing them with what looks at the runtime find:
 *
 *                    a change that was announced, or a provoked event
 *     untrusted ─────────────────────────────────────────────────────> trusted
 *         ^                                                               │
 *         └───────────────────────────────────────────────────────────────┘
 *            a change nobody announced, a provoked event that does not come, a broken stream,
 *            nothing that has shown for long that events arrive
 *
 * After an event was missed, trust comes back only after a while, which grows with each time: a stream that loses some
 * events must not be relied on because it delivers others.
 */
export class EventTrust implements Disposable {
  readonly #deps: EventTrustDeps;
  readonly #backoff: Backoff;
  /** What was announced of each container on this stream. */
  readonly #announced = new LruMap<string, Set<What>>({ capacity: maxContainers });
  /** What must be announced soon, or was missed. */
  readonly #expected = new Map<string, { readonly needs: readonly What[]; readonly dueMs: number }>();
  #state: TrustState = 'untrusted';
  #notBeforeMs = 0;
  #lastProofMs: number | undefined;
  /** Since this stamp events are known to arrive; what happened before may have been missed rightly. */
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

  /** When it was last shown that events arrive, in monotonic milliseconds. */
  get lastProofMs(): number | undefined {
    return this.#lastProofMs;
  }

  /** A stream is read from its beginning, or no longer read at all; what was known of the one before is void. */
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

  /** A look found these changes; the look before, begun at the stamp, had not. */
  changed(changes: readonly ItemChange[], unchangedAt: number): void {
    const judged = this.#reliableSince !== undefined && unchangedAt > this.#reliableSince;
    for (const change of changes) this.#checkChange(change, judged);
    this.#arm();
  }

  /** An event was provoked and must come. */
  expectProof(): void {
    if (!this.#expected.has(proofId)) this.#expect(proofId, ['proof'], proofLateMs);
    this.#arm();
  }

  /** It could not be provoked after all. */
  unexpectProof(): void {
    this.#expected.delete(proofId);
    this.#arm();
  }

  /** Nothing has shown for too long that events arrive. None is known to be lost, so one proof brings trust back. */
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
    const why = id === proofId ? 'a provoked event did not come' : `a change of ${id} was not announced`;
    this.#setState('untrusted', why);
    if (wasTrusted) this.#deps.missed(why);
  }

  #setState(state: TrustState, why: string): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#deps.changed(state, why);
  }

  /** One timer for whatever is due first. */
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
 * One of these must have been announced; none for changes a runtime may make in silence, such as a container that
 * fails before it runs.
 */
function announcementsOf({ from, to }: ItemChange): readonly What[] {
  if (to === 'running') return ['started'];
  if (from !== 'running') return [];
  if (to === 'exited') return ['stopped'];
  return to === undefined ? ['stopped', 'removed'] : [];
}
