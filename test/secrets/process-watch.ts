import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type Canaries, sharedPassword } from './canaries.ts';

const lookEveryMs = 10;

/** Looks at the arguments and the environment of all processes of the host again and again; containers see their own. */
export class ProcessWatch implements Disposable {
  readonly #canaries: Canaries;
  readonly #own = readlinkSync('/proc/self/ns/pid');
  readonly #timer: NodeJS.Timeout;
  readonly found = new Set<string>();
  looks = 0;

  constructor(canaries: Canaries) {
    this.#canaries = canaries;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.looks++;
    for (const pid of readdirSync('/proc')) if (/^\d+$/.test(pid)) this.#lookAt(pid);
  }

  #lookAt(pid: string): void {
    try {
      if (Number(pid) === process.pid || readlinkSync(`/proc/${pid}/ns/pid`) !== this.#own) return;
      // What a user types is the user's, also before setpriv has become kubectl.
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
      // It has ended.
    }
  }
}
