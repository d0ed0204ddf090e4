import { type Command, type CommandCall, OutOfMemory, type Running } from './session.ts';
import { ShellRefusal } from './syntax.ts';

/**
 * Shell commands on the files of the container. Every directory exists, because only files are
 * simulated.
 */
export const fileCommands: Readonly<Record<string, Command>> = {
  cat: catCommand,
  head: headCommand,
  tail: tailCommand,
  touch: touchCommand,
  rm: rmCommand,
  mkdir: () => 0,
};

function* catCommand(call: CommandCall): Running {
  const { args, streams, host } = call;
  let status = 0;
  for (const path of args.length === 0 ? ['-'] : args) {
    if (path !== '-') status = show(call, 'cat', path) || status;
    else if (streams.stdin !== undefined) streams.write('stdout', streams.stdin);
    else if (host.stdin === 'open') yield { kind: 'forever' };
  }
  return status;
}

function show({ files, streams }: CommandCall, name: string, path: string): number {
  const response = files.read(path);
  if (response.ok) streams.write('stdout', response.text);
  else streams.write('stderr', `${name}: can't open '${path}': ${response.why}\n`);
  return response.ok ? 0 : 1;
}

const largestHead = 64 << 20;

function headCommand({ args, files, streams }: CommandCall): number {
  const [flag, count, path, ...more] = args;
  const number = Number(count);
  if ((flag !== '-c' && flag !== '-n') || path === undefined || more.length > 0 || !(number <= largestHead)) {
    throw new ShellRefusal(`head ${args.join(' ')} is not supported`);
  }
  if (path === '/dev/zero' && flag === '-c') {
    streams.write('stdout', '\0'.repeat(number));
    return 0;
  }
  const response = files.read(path);
  if (!response.ok) {
    streams.write('stderr', `head: ${path}: ${response.why}\n`);
    return 1;
  }
  const lines = response.text.split(/(?<=\n)/);
  streams.write('stdout', flag === '-c' ? response.text.slice(0, number) : lines.slice(0, number).join(''));
  return 0;
}

/** The tail command: with -f it never exits, and on an endless file it uses all the memory. */
function* tailCommand(call: CommandCall): Running {
  const { args, files, streams } = call;
  const follow = /^-[fF]$/.test(args[0] ?? '');
  const [path, ...more] = follow ? args.slice(1) : args;
  if (path === undefined || path.startsWith('-') || more.length > 0) {
    throw new ShellRefusal(`tail ${args.join(' ')} is not supported`);
  }
  if (path === '/dev/zero') {
    yield { kind: 'sleep', ms: 20 };
    throw new OutOfMemory();
  }
  const response = files.read(path);
  if (!response.ok) {
    streams.write('stderr', `tail: ${path}: ${response.why}\n`);
    return 1;
  }
  streams.write(
    'stdout',
    response.text
      .split(/(?<=\n)/)
      .slice(-10)
      .join(''),
  );
  if (follow) yield { kind: 'forever' };
  return 0;
}

function touchCommand({ args, files, streams }: CommandCall): number {
  let status = 0;
  for (const path of args) {
    const response = files.write(path, '', 'append');
    if (response.ok) continue;
    streams.write('stderr', `touch: ${path}: ${response.why}\n`);
    status = 1;
  }
  return status;
}

function rmCommand({ args, files, streams }: CommandCall): number {
  const force = args.some((arg) => /^-\w*f/.test(arg));
  let status = 0;
  for (const path of args.filter((arg) => !arg.startsWith('-'))) {
    const response = files.remove(path);
    if (response.ok || force) continue;
    streams.write('stderr', `rm: can't remove '${path}': ${response.why}\n`);
    status = 1;
  }
  return status;
}
