import { abortable, cancelledError } from './abort.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  callers: number;
}

/**
 * Concurrent callers with the same key share one run of the work. The run is aborted when all its
 * callers have aborted; a later caller starts a new one.
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
    // Starts the work in a resolved promise, so that an exception in it rejects for all callers.
    const result = Promise.resolve().then(() => work(controller.signal));
    const flight: Flight<T> = { result, controller, callers: 0 };
    this.#flights.set(key, flight);
    result.then(
      () => this.#remove(key, flight),
      () => this.#crash(key, flight),
    );
    return flight;
  }

  /** A completed run is not aborted, because its result may still use the signal. */
  #end(key: K, flight: Flight<T>): void {
    if (this.#remove(key, flight)) {
      flight.controller.abort(cancelledError('All callers have aborted'));
    }
  }

  /**
   * When the work fails, the operations that it started concurrently are aborted, because no caller
   * could abort them any more.
   */
  #crash(key: K, flight: Flight<T>): void {
    this.#remove(key, flight);
    flight.controller.abort(cancelledError('Another concurrent operation failed'));
  }

  /** Ends the run; returns whether it was still in progress. */
  #remove(key: K, flight: Flight<T>): boolean {
    return this.#flights.get(key) === flight && this.#flights.delete(key);
  }
}
