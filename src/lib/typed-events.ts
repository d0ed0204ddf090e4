import { type Buffering, Subscription } from './subscription.ts';

type Subscriber<P> = (payload: P) => unknown;

/** Called for each subscriber that failed; `event` is the name of the event. Must not throw. */
export type SubscriberFailed = (error: unknown, event: string) => void;

/**
 * Events of one sender by name, each with its own type of payload:
 *
 *     const events = new TypedEvents<{ 'container-exited': ContainerExited }>(report);
 *
 * Subscribers are called synchronously, in the order of subscription; one that throws or rejects is
 * reported and affects neither the sender nor the others. An event without subscribers costs one
 * look-up.
 */
export class TypedEvents<Payloads extends object> {
  /**
   * Subscriber lists are replaced and never changed, so subscribers may be added and removed during
   * an event.
   */
  readonly #subscribers = new Map<keyof Payloads, readonly Subscriber<never>[]>();
  readonly #onError: SubscriberFailed;

  constructor(onError: SubscriberFailed) {
    this.#onError = onError;
  }

  /** Whether the event has subscribers; if not, the sender need not build a costly payload. */
  hasSubscribers(name: keyof Payloads): boolean {
    return this.#subscribers.has(name);
  }

  on<N extends keyof Payloads>(name: N, subscriber: (payload: Payloads[N]) => unknown): Disposable {
    // Each subscription wraps the function in another one, so that a function may be subscribed
    // twice and unsubscribed once.
    const own: Subscriber<Payloads[N]> = (payload) => subscriber(payload);
    this.#subscribers.set(name, [...(this.#subscribers.get(name) ?? []), own]);
    return { [Symbol.dispose]: () => this.#unsubscribe(name, own) };
  }

  /**
   * Subscribes a bounded buffer for a reader that may be slower than the sender. Closing it
   * unsubscribes.
   */
  subscribe<N extends keyof Payloads>(name: N, buffering: Buffering<Payloads[N]>): Subscription<Payloads[N]> {
    const subscription = new Subscription<Payloads[N]>(buffering, () => link[Symbol.dispose]());
    const link = this.on(name, (payload) => subscription.push(payload));
    return subscription;
  }

  emit<N extends keyof Payloads>(name: N, payload: Payloads[N]): void {
    const subscribers = this.#subscribers.get(name) as readonly Subscriber<Payloads[N]>[] | undefined;
    if (subscribers === undefined) return;
    for (const subscriber of subscribers) {
      if (this.#isSubscribed(name, subscriber)) this.#call(name, subscriber, payload);
    }
  }

  /** A subscriber removed during the event is not called any more. */
  #isSubscribed(name: keyof Payloads, subscriber: Subscriber<never>): boolean {
    return this.#subscribers.get(name)?.includes(subscriber) ?? false;
  }

  #call<P>(name: keyof Payloads, subscriber: Subscriber<P>, payload: P): void {
    try {
      const result = subscriber(payload);
      if (result instanceof Promise) result.catch((error) => this.#report(error, name));
    } catch (error) {
      this.#report(error, name);
    }
  }

  #report(error: unknown, name: keyof Payloads): void {
    try {
      this.#onError(error, String(name));
    } catch {
      // A failure of the reporter cannot be reported; the sender must continue.
    }
  }

  #unsubscribe(name: keyof Payloads, subscriber: Subscriber<never>): void {
    const left = (this.#subscribers.get(name) ?? []).filter((other) => other !== subscriber);
    if (left.length === 0) this.#subscribers.delete(name);
    else this.#subscribers.set(name, left);
  }
}
