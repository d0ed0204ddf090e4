import { pick, type Random } from '../../../src/lib/index.ts';
import { type ApiRequest, type ApiVerb, resourceWithSubresource } from '../../../src/local-api/api/index.ts';
import { type Chance, countedRules, draw, firstStrike, type RuleBounds } from '../fault-rules.ts';

/** The injected fault of one API call. */
export type ApiFault =
  /** The call is executed later than usual. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The call is rejected with this HTTP status and has no effect. */
  | {
      readonly kind: 'refuse';
      readonly status: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfterMs?: number;
    }
  /** The connection fails and the call has no effect. */
  | { readonly kind: 'unreachable' }
  /** The call has no effect, and there is no response until the caller's deadline. */
  | { readonly kind: 'hang' }
  /**
   * The call takes effect, but the connection breaks before the response, or the response never
   * arrives.
   */
  | { readonly kind: 'lost-answer'; readonly how: 'cut' | 'silence' }
  /** The connection breaks, and the call takes effect later. */
  | { readonly kind: 'late-effect'; readonly ms: number }
  /**
   * A get or list that accepts cached data (resourceVersion 0) returns the state as of this many
   * changes ago.
   */
  | { readonly kind: 'stale'; readonly versions: number };

/** The injected fault of one event for one watcher. */
export type WatchFault =
  /** The event and all later ones are delayed by this time. */
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'duplicate' }
  /** The connection of the watch breaks, and the event is lost. */
  | { readonly kind: 'cut' }
  /** The watch fails with 410. */
  | { readonly kind: 'gone' }
  /** The server ends the watch as it does when the timeout of the watch expires. */
  | { readonly kind: 'end' };

export interface PassingApiEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly resource: string;
  readonly name: string | undefined;
  /** The name of the watcher's user. */
  readonly user: string;
}

/**
 * Decides which faults are injected. Called once for every call and for every event of every
 * watcher; undefined injects nothing.
 */
export interface ApiFaultPlan {
  call(request: ApiRequest): ApiFault | undefined;
  event(event: PassingApiEvent): WatchFault | undefined;
}

export const noApiFaults: ApiFaultPlan = { call: () => undefined, event: () => undefined };

/** The error of a write that lost against a concurrent write of another client. */
export const conflictFault: ApiFault = {
  kind: 'refuse',
  status: 409,
  reason: 'Conflict',
  message: 'the object has been modified; please apply your changes to the latest version and try again',
};

export interface ApiCallRule extends RuleBounds {
  readonly verb: ApiVerb | '*';
  /** The resource, optionally with a subresource, such as `pods` or `pods/status`. */
  readonly target: string | '*';
  readonly matches?: (request: ApiRequest) => boolean;
  readonly fault: ApiFault;
}

export interface ApiEventRule extends RuleBounds {
  /** The resource of the watched object, such as `pods`. */
  readonly resource: string | '*';
  readonly matches?: (event: PassingApiEvent) => boolean;
  readonly fault: WatchFault;
}

/** Injects faults by the given rules; the first of several matching rules applies. */
export function scriptedApiFaults(rules: {
  readonly calls?: readonly ApiCallRule[];
  readonly events?: readonly ApiEventRule[];
}): ApiFaultPlan {
  const calls = countedRules(rules.calls);
  const events = countedRules(rules.events);
  return {
    call: (request) => firstStrike(calls.filter(({ rule }) => concernsCall(rule, request))),
    event: (event) => firstStrike(events.filter(({ rule }) => concernsEvent(rule, event))),
  };
}

function concernsCall({ verb, target, matches }: ApiCallRule, request: ApiRequest): boolean {
  const isVerb = verb === '*' || verb === request.verb;
  return (
    isVerb && (target === '*' || target === resourceWithSubresource(request)) && (matches?.(request) ?? true)
  );
}

function concernsEvent({ resource, matches }: ApiEventRule, event: PassingApiEvent): boolean {
  return (resource === '*' || resource === event.resource) && (matches?.(event) ?? true);
}

/** The probability of each fault, from 0 to 1; faults without a rate never occur. */
export interface ApiFaultRates {
  readonly delay?: number;
  readonly refuse?: number;
  readonly conflict?: number;
  readonly unreachable?: number;
  readonly hang?: number;
  readonly lostAnswer?: number;
  readonly lateEffect?: number;
  readonly stale?: number;
  readonly eventLate?: number;
  readonly eventDuplicated?: number;
  readonly watchCut?: number;
  readonly watchGone?: number;
  readonly watchEnded?: number;
}

export interface RandomApiFaultOptions {
  readonly random: Random;
  readonly rates: ApiFaultRates;
  /** The longest delay of a call, an effect or an event; 5 s by default. */
  readonly maxDelayMs?: number;
  /** Selects requests that never get a fault. */
  readonly spares?: (request: ApiRequest) => boolean;
}

const refusals: readonly [ApiFault, ...ApiFault[]] = [
  { kind: 'refuse', status: 500, reason: 'InternalError', message: 'injected: the server failed' },
  { kind: 'refuse', status: 503, reason: 'ServiceUnavailable', message: 'injected: no leader' },
  { kind: 'refuse', status: 504, reason: 'Timeout', message: 'injected: the store did not answer' },
  {
    kind: 'refuse',
    status: 429,
    reason: 'TooManyRequests',
    message: 'injected: too many',
    retryAfterMs: 1_000,
  },
];

/** Injects random faults: the same seed and the same calls give the same faults. */
export function randomApiFaults(options: RandomApiFaultOptions): ApiFaultPlan {
  const { random, rates } = options;
  const someMs = () => 1 + random.next() * (options.maxDelayMs ?? 5_000);
  const calls: readonly Chance<ApiFault>[] = [
    [rates.delay ?? 0, () => ({ kind: 'delay', ms: someMs() })],
    [rates.refuse ?? 0, () => pick(random, refusals) ?? refusals[0]],
    [rates.unreachable ?? 0, () => ({ kind: 'unreachable' })],
    [rates.hang ?? 0, () => ({ kind: 'hang' })],
    [rates.lostAnswer ?? 0, () => ({ kind: 'lost-answer', how: random.next() < 0.5 ? 'cut' : 'silence' })],
    [rates.lateEffect ?? 0, () => ({ kind: 'late-effect', ms: someMs() })],
    [rates.stale ?? 0, () => ({ kind: 'stale', versions: 1 + Math.floor(random.next() * 20) })],
    [rates.conflict ?? 0, () => conflictFault],
  ];
  const events: readonly Chance<WatchFault>[] = [
    [rates.eventLate ?? 0, () => ({ kind: 'delay', ms: someMs() })],
    [rates.eventDuplicated ?? 0, () => ({ kind: 'duplicate' })],
    [rates.watchCut ?? 0, () => ({ kind: 'cut' })],
    [rates.watchGone ?? 0, () => ({ kind: 'gone' })],
    [rates.watchEnded ?? 0, () => ({ kind: 'end' })],
  ];
  return {
    call: (request) => (options.spares?.(request) ? undefined : mayConflict(request, draw(random, calls))),
    event: () => draw(random, events),
  };
}

/** Ignores a randomly selected conflict for a read, because only writes can conflict. */
function mayConflict({ verb }: ApiRequest, fault: ApiFault | undefined): ApiFault | undefined {
  const isWrite = verb === 'update' || verb === 'patch' || verb === 'delete';
  return fault === conflictFault && !isWrite ? undefined : fault;
}
