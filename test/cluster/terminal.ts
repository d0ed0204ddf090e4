import { readFile, readlink } from 'node:fs/promises';
import { realClock, runChecked } from '../../src/lib/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { Conversation } from './conversation.ts';
import { patiently } from './patiently.ts';

const resizeWithinMs = 10_000;

/** A terminal with a kubectl in it, as somebody at a keyboard has one. */
export class Terminal implements AsyncDisposable {
  readonly talk: Conversation;

  static open(plane: ControlPlane, ...args: readonly string[]): Terminal {
    const child = plane.spawn((kubectl) => {
      const line = [kubectl, ...args].map(quoted).join(' ');
      // Without `exec` a shell would stand between the terminal and kubectl.
      return ['script', '--quiet', '--return', '--flush', '--command', `exec ${line}`, '/dev/null'];
    });
    return new Terminal(new Conversation(child));
  }

  private constructor(talk: Conversation) {
    this.talk = talk;
  }

  /** As somebody does who drags a corner of the window. */
  async resize(rows: number, columns: number): Promise<void> {
    const device = await patiently('the terminal to be there', () => this.#device());
    const args = ['-F', device, 'rows', String(rows), 'cols', String(columns)];
    const command = { file: 'stty', args, clock: realClock(), deadlineMs: resizeWithinMs };
    await runChecked(command, new AbortController().signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.talk[Symbol.asyncDispose]();
  }

  /** By the input of what runs in it; undefined while nothing does. */
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
