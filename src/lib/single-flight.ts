import { abortable, cancelledError } from './abort.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  callers: number;
}

/**
 * Callers who want the same thing at the same time share one run of the work. The run is aborted when the last of
 * them has given up; one who comes after that starts a new one.
 */
export class SingleFlight<K, T> {
  readonly #flights = new Map<K, Flight<T>>();

  get size(): number {
    return this.#flights.size;
  }

  async run(key: K, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#start(key, work);
    flight.callers++;
    try {
      return await abortable(flight.result, signal);
    } finally {
      flight.callers--;
      if (flight.callers === 0) this.#end(key, flight);
    }
  }

  #start(key: K, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    // Through a resolved promise, so that work which throws at once fails its callers like any other.
    const result = Promise.resolve().then(() => work(controller.signal));
    const flight: Flight<T> = { result, controller, callers: 0 };
    this.#flights.set(key, flight);
    result.then(
      () => this.#remove(key, flight),
      () => this.#crash(key, flight),
    );
    return flight;
  }

  /** A run that has landed is left alone: its result may still use the signal. */
  #end(key: K, flight: Flight<T>): void {
    if (this.#remove(key, flight)) {
      flight.controller.abort(cancelledError('Nobody waits for the result any more'));
    }
  }

  /** Of several things the work began at once none goes on when one has failed: nobody could abort it any more. */
  #crash(key: K, flight: Flight<T>): void {
    this.#remove(key, flight);
    flight.controller.abort(cancelledError('Part of the work failed'));
  }

  /** Answers whether the flight was still under way. */
  #remove(key: K, flight: Flight<T>): boolean {
    return this.#flights.get(key) === flight && this.#flights.delete(key);
  }
}
