import { type Clock, describeError, HintLatch, type Logger } from '../../lib/index.ts';
import type { CsiApi } from './csi-attach.ts';
import type { CsiDrivers } from './csi-drivers.ts';

export interface CsiNodeUpdatesDeps {
  readonly api: Pick<CsiApi, 'driver'>;
  readonly drivers: Pick<CsiDrivers, 'names' | 'update'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Schedule {
  /** Poll period of the driver; undefined when it requests no updates. */
  periodMs: number | undefined;
  polledMs: number;
  /** Time at which the period was last read from the CSIDriver object. */
  periodReadMs: number;
}

/** Minimum poll period. */
const tickMs = 10_000;
const periodReadEveryMs = 60_000;
const idleMs = 600_000;

/**
 * Polls the volume limits of drivers at the nodeAllocatableUpdatePeriodSeconds of their CSIDriver
 * object.
 */
export class CsiNodeUpdates {
  readonly #deps: CsiNodeUpdatesDeps;
  readonly #schedules = new Map<string, Schedule>();
  readonly #urgent = new Set<string>();
  readonly #busy = new Map<string, Promise<void>>();
  readonly #hints: HintLatch;

  constructor(deps: CsiNodeUpdatesDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
  }

  /** Called when a driver has registered. */
  hint(): void {
    this.#hints.raise();
  }

  /** Polls the driver soon; called when an attach failure shows that the known limit is wrong. */
  refreshSoon(driver: string): void {
    this.#urgent.add(driver);
    this.#hints.raise();
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        const names = this.#deps.drivers.names();
        await this.#hints.wait(names.length === 0 ? idleMs : tickMs, signal);
        this.#hints.clear();
        this.#poll(signal);
      }
    } finally {
      await Promise.all(this.#busy.values());
    }
  }

  /**
   * Polls the drivers that are due, concurrently, so that an unresponsive driver does not delay the
   * polls of other drivers.
   */
  #poll(signal: AbortSignal): void {
    const names = new Set(this.#deps.drivers.names());
    for (const known of [...this.#schedules.keys(), ...this.#urgent])
      if (!names.has(known)) {
        this.#schedules.delete(known);
        this.#urgent.delete(known);
      }
    for (const name of names) {
      if (this.#busy.has(name)) continue;
      const poll = this.#check(name, signal).then(() => void this.#busy.delete(name));
      this.#busy.set(name, poll);
    }
  }

  async #check(driver: string, signal: AbortSignal): Promise<void> {
    // Yields before the poll starts, so that the driver is already registered as busy.
    await Promise.resolve();
    const { clock, drivers, logger } = this.#deps;
    try {
      const schedule = await this.#scheduleOf(driver, signal);
      const nowMs = clock.monotonicMs();
      const isDue = schedule.periodMs !== undefined && nowMs - schedule.polledMs >= schedule.periodMs;
      if (!isDue && !this.#urgent.delete(driver)) return;
      this.#urgent.delete(driver);
      schedule.polledMs = nowMs;
      await drivers.update(driver, signal);
    } catch (error) {
      if (signal.aborted) return;
      const because = describeError(error);
      logger.warn('Failed to poll CSI driver for node info, will retry', {
        driver,
        because,
      });
    }
  }

  async #scheduleOf(driver: string, signal: AbortSignal): Promise<Schedule> {
    const nowMs = this.#deps.clock.monotonicMs();
    const known = this.#schedules.get(driver);
    if (known !== undefined && nowMs - known.periodReadMs < periodReadEveryMs) return known;
    // A new driver was queried at its registration, so its first poll is one period later.
    const schedule = known ?? { periodMs: undefined, polledMs: nowMs, periodReadMs: nowMs };
    this.#schedules.set(driver, schedule);
    schedule.periodReadMs = nowMs;
    const spec = await this.#deps.api.driver(driver, signal);
    const seconds = spec?.spec.nodeAllocatableUpdatePeriodSeconds;
    schedule.periodMs = seconds === undefined ? undefined : Math.max(seconds * 1_000, tickMs);
    return schedule;
  }
}
