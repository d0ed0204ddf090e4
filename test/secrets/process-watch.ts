import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type Canaries, sharedPassword } from './canaries.ts';

const sampleEveryMs = 10;

/**
 * Samples the arguments and the environment of all host processes repeatedly; containers may hold
 * their own secrets.
 */
export class ProcessWatch implements Disposable {
  readonly #canaries: Canaries;
  readonly #own = readlinkSync('/proc/self/ns/pid');
  readonly #timer: NodeJS.Timeout;
  readonly found = new Set<string>();
  samples = 0;

  constructor(canaries: Canaries) {
    this.#canaries = canaries;
    this.#timer = setInterval(() => this.#sample(), sampleEveryMs);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    this.samples++;
    for (const pid of readdirSync('/proc')) if (/^\d+$/.test(pid)) this.#inspect(pid);
  }

  #inspect(pid: string): void {
    try {
      if (Number(pid) === process.pid || readlinkSync(`/proc/${pid}/ns/pid`) !== this.#own) return;
      // Skips kubectl processes, whose arguments a user has typed, and setpriv processes that will
      // execute kubectl.
      if (
        readFileSync(`/proc/${pid}/cmdline`, 'utf8')
          .split('\0')
          .some((word) => /(?:^|\/)kubectl$/.test(word))
      )
        return;
      for (const part of ['cmdline', 'environ']) {
        const content = readFileSync(`/proc/${pid}/${part}`);
        const program = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
        for (const name of this.#canaries.in(content))
          if (name !== sharedPassword) this.found.add(`${program} has ${name} in its ${part}`);
      }
    } catch {
      // The process has exited since it was listed.
    }
  }
}
