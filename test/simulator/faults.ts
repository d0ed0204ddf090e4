import type { CriOperation } from '../../src/cri/index.ts';
import { type Random, randomInt } from '../../src/lib/index.ts';
import type { GrpcCode } from '../../src/protocols/grpc/index.ts';
import { type Chance, countedRules, draw, firstStrike, type RuleBounds } from './fault-rules.ts';

/**
 * The methods of the simulated runtime; `subscribe`, `list` and `listStatuses` belong to
 * containerd's own API.
 */
export type SimulatedMethod = CriOperation | 'subscribe' | 'list' | 'listStatuses';

/** The injected fault of one runtime call. */
export type Fault =
  /** The call is executed later than usual. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The call is rejected and has no effect. */
  | { readonly kind: 'error'; readonly code: GrpcCode; readonly message: string }
  /**
   * The call has no effect and no response; it ends when the caller aborts or the runtime is
   * killed.
   */
  | { readonly kind: 'hang' }
  /**
   * The call takes effect, but its response is lost: the caller gets an error, or waits until it
   * aborts.
   */
  | { readonly kind: 'lost-reply'; readonly code: 'UNAVAILABLE' | 'DEADLINE_EXCEEDED' | 'none' }
  /** The caller gets an error, and the call takes effect later. */
  | {
      readonly kind: 'late-effect';
      readonly ms: number;
      readonly code: 'UNAVAILABLE' | 'DEADLINE_EXCEEDED';
    };

/** The injected fault of one event for one subscriber. */
export type EventFault =
  | { readonly kind: 'drop' }
  /** The event is delivered after later events. */
  | { readonly kind: 'late'; readonly ms: number }
  /** The event is delivered twice, the second time after this delay. */
  | { readonly kind: 'duplicate'; readonly ms: number }
  /** The event is lost and its stream ends. */
  | { readonly kind: 'cut' };

export interface PassingEvent {
  readonly stream: 'cri' | 'containerd';
  /** The topic of a containerd event, or the type of a CRI event. */
  readonly topic: string;
  readonly containerId: string;
}

/**
 * Decides which faults are injected. Called once for every call and for every event of every
 * subscriber; undefined injects nothing.
 */
export interface FaultPlan {
  call(method: SimulatedMethod, request: unknown): Fault | undefined;
  event(event: PassingEvent): EventFault | undefined;
}

export const noFaults: FaultPlan = { call: () => undefined, event: () => undefined };

export interface CallRule extends RuleBounds {
  readonly method: SimulatedMethod | '*';
  readonly matches?: (request: unknown) => boolean;
  readonly fault: Fault;
}

export interface EventRule extends RuleBounds {
  readonly topic: string | '*';
  readonly matches?: (event: PassingEvent) => boolean;
  readonly fault: EventFault;
}

/** Injects faults by the given rules; the first of several matching rules applies. */
export function scriptedFaults(rules: {
  readonly calls?: readonly CallRule[];
  readonly events?: readonly EventRule[];
}): FaultPlan {
  const calls = countedRules(rules.calls);
  const events = countedRules(rules.events);
  return {
    call: (method, request) =>
      firstStrike(
        calls.filter(
          ({ rule }) =>
            (rule.method === '*' || rule.method === method) &&
            (rule.matches === undefined || rule.matches(request)),
        ),
      ),
    event: (event) =>
      firstStrike(
        events.filter(
          ({ rule }) =>
            (rule.topic === '*' || rule.topic === event.topic) &&
            (rule.matches === undefined || rule.matches(event)),
        ),
      ),
  };
}

/** The probability of each fault, from 0 to 1; faults without a rate never occur. */
export interface FaultRates {
  readonly delay?: number;
  readonly error?: number;
  readonly hang?: number;
  readonly lostReply?: number;
  readonly lateEffect?: number;
  readonly eventDropped?: number;
  readonly eventLate?: number;
  readonly eventDuplicated?: number;
  readonly streamCut?: number;
}

export interface RandomFaultOptions {
  readonly random: Random;
  readonly rates: FaultRates;
  /** The longest delay of a call, an effect or an event; 5 s by default. */
  readonly maxDelayMs?: number;
  /** Methods that never get a fault, such as `version`, without which no client can connect. */
  readonly except?: readonly SimulatedMethod[];
}

const refusals: readonly Fault[] = [
  { kind: 'error', code: 'UNKNOWN', message: 'injected: the runtime failed' },
  { kind: 'error', code: 'UNAVAILABLE', message: 'injected: the runtime is not there' },
  { kind: 'error', code: 'DEADLINE_EXCEEDED', message: 'injected: context deadline exceeded' },
  { kind: 'error', code: 'RESOURCE_EXHAUSTED', message: 'injected: too many requests' },
];

const lostReplies = ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'none'] as const;

/** Injects random faults: the same seed and the same calls give the same faults. */
export function randomFaults(options: RandomFaultOptions): FaultPlan {
  const { random, rates } = options;
  const someMs = () => 1 + random.next() * (options.maxDelayMs ?? 5_000);
  const calls: readonly Chance<Fault>[] = [
    [rates.delay ?? 0, () => ({ kind: 'delay', ms: someMs() })],
    [rates.error ?? 0, () => oneOf(random, refusals)],
    [rates.hang ?? 0, () => ({ kind: 'hang' })],
    [rates.lostReply ?? 0, () => ({ kind: 'lost-reply', code: oneOf(random, lostReplies) })],
    [
      rates.lateEffect ?? 0,
      () => ({
        kind: 'late-effect',
        ms: someMs(),
        code: oneOf(random, ['UNAVAILABLE', 'DEADLINE_EXCEEDED']),
      }),
    ],
  ];
  const events: readonly Chance<EventFault>[] = [
    [rates.eventDropped ?? 0, () => ({ kind: 'drop' })],
    [rates.eventLate ?? 0, () => ({ kind: 'late', ms: someMs() })],
    [rates.eventDuplicated ?? 0, () => ({ kind: 'duplicate', ms: someMs() })],
    [rates.streamCut ?? 0, () => ({ kind: 'cut' })],
  ];
  const spared = new Set(options.except);
  return {
    call: (method) => (spared.has(method) ? undefined : draw(random, calls)),
    event: () => draw(random, events),
  };
}

function oneOf<T>(random: Random, items: readonly [T, ...T[]] | readonly T[]): T {
  return items[randomInt(random, items.length)] as T;
}
