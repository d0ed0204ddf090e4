import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, onAbort, type Timer } from '../../lib/index.ts';
import { IdleTimer } from './idle-timer.ts';

export interface RelayOptions {
  readonly clock: Clock;
  /** How long both sides may be idle; 0 for no limit. */
  readonly idleMs: number;
}

/** After one side has ended, the other must continue or end within this time. */
const lingerMs = 10_000;

/**
 * Relays bytes between the two until both have ended, either breaks, both are idle for too long, or
 * the signal is aborted; then closes both. Each direction ends separately, and neither is read
 * faster than the other accepts.
 */
export function relay(one: Duplex, other: Duplex, options: RelayOptions, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      link?.[Symbol.dispose]();
      idle[Symbol.dispose]();
      for (const watch of watches) watch[Symbol.dispose]();
      for (const side of [one, other]) side.destroy();
      resolve();
    };
    const idle = new IdleTimer(options.clock, options.idleMs, finish);
    const watches = [one, other].map((side) => new StallWatch(options.clock, side));
    const link = signal.aborted ? undefined : onAbort(signal, finish);
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      from.on('data', () => {
        if (!to.destroyed) idle.touch();
      });
      // Not when one side has ended but when the other has accepted all of it, however slowly it
      // reads.
      to.on('finish', () => idle.shorten(lingerMs));
      from.on('close', () => {
        if (to.destroyed) return finish();
        if (!from.readableEnded) idle.shorten(lingerMs);
        closeAfter(from, to);
      });
      from.on('error', () => {});
      from.pipe(to);
    }
    if (one.destroyed || other.destroyed || signal.aborted) finish();
  });
}

/**
 * One side is closed. Its bytes are still relayed, even if our own writes to it failed; a side that
 * broke closes the other once that has accepted all bytes in flight, possibly through encryption.
 */
function closeAfter(gone: Duplex, left: Duplex): void {
  // Its output is discarded, but it must be read, or its end would not be noticed.
  left.unpipe();
  left.resume();
  if (!gone.readableEnded) left.end(() => left.destroy());
}

const keepAliveMs = 15_000;
const checkMs = 5_000;
const nothing = new Uint8Array(0);

/**
 * Detects a lost peer of a socket that is not being read: an unread socket reports no error. While
 * reading is paused, an empty write is tried at intervals, which sends nothing but fails on a
 * broken connection, and TCP keepalive breaks a connection whose peer is lost. A peer that is
 * merely idle is left alone.
 */
class StallWatch implements Disposable {
  readonly #clock: Clock;
  readonly #socket: Socket | undefined;
  #timer: Timer | undefined;
  #isOver = false;

  /** Only sockets are watched; streams of a connection end with it. */
  constructor(clock: Clock, side: Duplex) {
    this.#clock = clock;
    this.#socket = side instanceof Socket ? side : undefined;
    this.#socket?.setKeepAlive(true, keepAliveMs);
    this.#socket?.on('pause', () => this.#arm());
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  #arm(): void {
    if (this.#isOver || this.#timer !== undefined) return;
    this.#timer = this.#clock.timer(checkMs, () => {
      this.#timer = undefined;
      this.#check();
    });
  }

  #check(): void {
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed || !socket.isPaused()) return;
    // A socket with bytes in flight is watched by the system, and one whose peer has ended has a
    // limited time.
    if (socket.writable && socket.writableLength === 0) socket.write(nothing);
    this.#arm();
  }
}
