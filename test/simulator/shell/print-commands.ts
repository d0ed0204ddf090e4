import type { Command, CommandCall } from './session.ts';
import { ShellRefusal } from './syntax.ts';

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\u0007',
  '\\': '\\',
  '0': '\0',
};

/** Shell commands that print their arguments or a state. */
export const printCommands: Readonly<Record<string, Command>> = {
  echo: echoCommand,
  printf: printfCommand,
  env: environmentCommand,
  printenv: environmentCommand,
  hostname: ({ streams, host }) => print(streams, `${host.hostname}\n`),
  pwd: ({ streams, host, scope }) => print(streams, `${scope.get('PWD') ?? host.workingDir}\n`),
  date: dateCommand,
  seq: seqCommand,
};

function print(streams: CommandCall['streams'], text: string): number {
  streams.write('stdout', text);
  return 0;
}

function echoCommand({ args, streams }: CommandCall): number {
  let from = 0;
  let newline = '\n';
  let escaped = false;
  for (; /^-[neE]+$/.test(args[from] ?? ''); from++) {
    if (args[from]?.includes('n')) newline = '';
    if (args[from]?.includes('e')) escaped = true;
  }
  const text = args.slice(from).join(' ');
  return print(streams, (escaped ? resolveEscapes(text) : text) + newline);
}

function resolveEscapes(text: string): string {
  return text.replace(/\\(.)/g, (whole, char: string) => escapes[char] ?? whole);
}

/** The printf command; repeats the format for remaining arguments, as real shells do. */
function printfCommand({ args, streams }: CommandCall): number {
  const [format = '', ...values] = args;
  const rest = [...values];
  do {
    print(
      streams,
      resolveEscapes(format).replace(/%(.)/g, (_whole, kind: string) => formatted(kind, rest)),
    );
  } while (rest.length > 0 && /%[sdi]/.test(format));
  return 0;
}

function formatted(kind: string, rest: string[]): string {
  if (kind === '%') return '%';
  if (kind === 's') return rest.shift() ?? '';
  if (kind === 'd' || kind === 'i') return String(Math.trunc(Number(rest.shift() ?? 0)) || 0);
  throw new ShellRefusal(`printf %${kind} is not supported`);
}

function environmentCommand({ args, env, streams }: CommandCall): number {
  const [name, ...more] = args;
  if (more.length > 0 || name?.includes('=')) throw new ShellRefusal('env with arguments is not supported');
  if (name === undefined) return print(streams, [...env].map(([key, value]) => `${key}=${value}\n`).join(''));
  const value = env.get(name);
  return value === undefined ? 1 : print(streams, `${value}\n`);
}

function dateCommand({ args, streams, host }: CommandCall): number {
  if (args.join(' ') !== '+%s') throw new ShellRefusal(`date ${args.join(' ')} is not supported`);
  return print(streams, `${Math.floor(host.nowMs() / 1_000)}\n`);
}

function seqCommand({ args, streams }: CommandCall): number {
  const [first, last] = args.length === 1 ? [1, Number(args[0])] : [Number(args[0]), Number(args[1])];
  if (!(args.length <= 2 && last - first < 1_000_000))
    throw new ShellRefusal(`seq ${args.join(' ')} is not supported`);
  let text = '';
  for (let number = first; number <= last; number++) text += `${number}\n`;
  return print(streams, text);
}
