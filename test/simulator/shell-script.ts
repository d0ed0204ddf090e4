import type { StartProgram } from './process.ts';
import { commandNamed, isUnsimulated, programNamed } from './shell/commands.ts';
import { parseShell } from './shell/parse.ts';
import { ShellProgram } from './shell/shell-program.ts';
import { literalOf, type Node, ShellRefusal, ShellSyntaxError, simpleCommands } from './shell/syntax.ts';

/** The result of parsing a command line: a program, or the reason why it cannot be started. */
export type CommandLine =
  | { readonly ok: true; readonly program: StartProgram }
  | { readonly ok: false; readonly why: string };

/**
 * Interprets a command line with a small set of simulated programs: `sh -c` with sequences,
 * conditions, loops, traps, background jobs, redirections and variables, and a few dozen commands.
 * Unsupported syntax is rejected before the start; it is never ignored.
 */
export function commandLine(words: readonly string[]): CommandLine {
  const [name, ...args] = words;
  if (name === undefined) return { ok: false, why: 'args must not be empty' };
  if (name === '/pause') return { ok: true, program: pauseProgram };
  if (programNamed(name) === undefined) return { ok: false, why: missingProgram(name) };
  const script = scriptOf(words);
  if (script === undefined)
    return { ok: true, program: (host) => new ShellProgram({ kind: 'program', words }, host) };
  try {
    const node = parseShell(script.text);
    checkCommands(node);
    const start = { kind: 'script', script: node, name: script.name, args: script.args } as const;
    return { ok: true, program: (host) => new ShellProgram(start, host) };
  } catch (error) {
    if (error instanceof ShellSyntaxError) return { ok: true, program: failing(script.name, error.message) };
    if (error instanceof ShellRefusal)
      return { ok: false, why: `exec: "${name}": ${error.message} (${args.join(' ')})` };
    throw error;
  }
}

function missingProgram(name: string): string {
  if (isUnsimulated(name))
    return `exec: "${name}": ${new ShellRefusal(`the command ${name} is not supported`).message}`;
  return name.includes('/')
    ? `exec: "${name}": stat ${name}: no such file or directory`
    : `exec: "${name}": executable file not found in $PATH`;
}

function scriptOf(
  words: readonly string[],
): { readonly text: string; readonly name: string; readonly args: readonly string[] } | undefined {
  const [program, ...rest] = words[0] === 'busybox' ? words.slice(1) : words;
  const [flag, text, name, ...args] = rest;
  const isShell = /^(\/bin\/)?(sh|ash)$/.test(program ?? '');
  return isShell && flag === '-c' && text !== undefined ? { text, name: name ?? 'sh', args } : undefined;
}

/**
 * Rejects commands that a real image has but the simulator lacks; a command that no image has fails
 * only when it is reached.
 */
function checkCommands(script: Node): void {
  for (const { words } of simpleCommands(script)) {
    const name = literalOf(words[0]);
    if (name !== undefined && commandNamed(name) === undefined && isUnsimulated(name)) {
      throw new ShellRefusal(`the command ${name} is not supported`);
    }
  }
}

/** A program that reports a syntax error as a shell does. */
function failing(name: string, message: string): StartProgram {
  return (host) => ({
    start() {
      host.write('stderr', `${name}: ${message}\n`);
      host.end({ exitCode: 2, cause: 'exit' });
    },
    takes: () => false,
    drop() {},
  });
}

/** The pause program, which waits until it is stopped. */
const pauseProgram: StartProgram = (host) => ({
  start() {},
  takes(signal) {
    if (signal !== 'TERM' && signal !== 'INT') return false;
    host.end({ exitCode: 0, cause: 'exit' });
    return true;
  },
  drop() {},
});
