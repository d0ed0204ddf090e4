import { readFile, readlink } from 'node:fs/promises';
import { realClock, runChecked } from '../../src/lib/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { Conversation } from './conversation.ts';
import { patiently } from './patiently.ts';

const resizeWithinMs = 10_000;

/** A terminal with a kubectl in it, as an interactive user has. */
export class Terminal implements AsyncDisposable {
  readonly talk: Conversation;

  static open(plane: ControlPlane, ...args: readonly string[]): Terminal {
    const child = plane.spawn((kubectl) => {
      const line = [kubectl, ...args].map(quoted).join(' ');
      // With `exec`, no shell runs between the terminal and kubectl.
      return ['script', '--quiet', '--return', '--flush', '--command', `exec ${line}`, '/dev/null'];
    });
    return new Terminal(new Conversation(child));
  }

  private constructor(talk: Conversation) {
    this.talk = talk;
  }

  /** Resizes the terminal, as a user who resizes the window does. */
  async resize(rows: number, columns: number): Promise<void> {
    const device = await patiently('the terminal to be there', () => this.#device());
    const args = ['-F', device, 'rows', String(rows), 'cols', String(columns)];
    const command = { file: 'stty', args, clock: realClock(), deadlineMs: resizeWithinMs };
    await runChecked(command, new AbortController().signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.talk[Symbol.asyncDispose]();
  }

  /**
   * Finds the terminal device through the standard input of the process in it; undefined while no
   * process runs.
   */
  async #device(): Promise<string | undefined> {
    const { pid } = this.talk;
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
    const [child] = children.trim().split(' ');
    const input = await readlink(`/proc/${child}/fd/0`).catch(() => '');
    return input.startsWith('/dev/pts/') ? input : undefined;
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
