import { signalName, signalNumber } from '../process.ts';
import { fileCommands } from './file-commands.ts';
import { printCommands } from './print-commands.ts';
import { type Command, type CommandCall, ExitRequest, LoopRequest, type Running, Scope } from './session.ts';
import { ShellRefusal } from './syntax.ts';
import { testCommand } from './test-command.ts';

const suffixSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** The built-in commands of the shell; they do not exist as files in an image. */
const builtins: Readonly<Record<string, Command>> = {
  ':': () => 0,
  exit: exitCommand,
  trap: trapCommand,
  wait: waitCommand,
  exec: execCommand,
  set: setCommand,
  export: exportCommand,
  unset({ args, scope }) {
    for (const name of args) scope.unset(name);
    return 0;
  },
  cd({ args, scope }) {
    scope.set('PWD', args[0] ?? '/');
    return 0;
  },
  break: () => {
    throw new LoopRequest('break');
  },
  continue: () => {
    throw new LoopRequest('continue');
  },
};

/** The programs that exist in every simulated image. */
const programs: Readonly<Record<string, Command>> = {
  ...fileCommands,
  ...printCommands,
  true: () => 0,
  false: () => 1,
  sleep: sleepCommand,
  kill: killCommand,
  sh: shellCommand,
  ash: shellCommand,
  test: (call) => testCommand(call, call.args),
  '[': (call) => {
    if (call.args.at(-1) === ']') return testCommand(call, call.args.slice(0, -1));
    call.streams.write('stderr', 'sh: [: missing ]\n');
    return 2;
  },
  busybox: (call) => {
    const [name = '', ...args] = call.args;
    return programNamed(name)?.({ ...call, args }) ?? 127;
  },
};

/**
 * Programs that a real busybox image has but the simulator lacks; their error must not look like a
 * missing file.
 */
const unsimulated = new Set(
  (
    'awk base64 basename bc chmod chown clear cmp cp crond cut dd df diff dirname dmesg dnsdomainname du egrep ' +
    'expr fgrep find fold free fsync ftpget getopt grep groups gunzip gzip hexdump httpd hwclock id ifconfig install ' +
    'ip ipcalc kill5 killall less ln logger ls lsof md5sum mkfifo mknod mktemp more mount mv nc netstat nice nohup ' +
    'nslookup nproc od paste patch ping ping6 pgrep pidof pkill ps read readlink realpath rev rmdir route sed setsid ' +
    'sha256sum shift sort split stat strings stty su sync sysctl tar tee telnet tftp time timeout top tr traceroute ' +
    'tty umount uname uniq unxz unzip uptime usleep vi watch wc wget which whoami xargs xz yes zcat eval local ' +
    'source read return umask ulimit alias command type getopts'
  ).split(' '),
);

const places = ['/bin/', '/usr/bin/', '/sbin/', '/usr/sbin/'];

/** The built-in command or program that the shell finds by this name. */
export function commandNamed(name: string): Command | undefined {
  return Object.hasOwn(builtins, name) ? builtins[name] : programNamed(name);
}

/** The program with this name or path in the simulated image. */
export function programNamed(name: string): Command | undefined {
  const bare = bareName(name);
  return Object.hasOwn(programs, bare) ? programs[bare] : undefined;
}

/** Whether a real image has this program but the simulator lacks it. */
export function isUnsimulated(name: string): boolean {
  return unsimulated.has(bareName(name));
}

function bareName(name: string): string {
  const place = places.find((directory) => name.startsWith(directory));
  return place === undefined ? name : name.slice(place.length);
}

function exitCommand({ args, scope, streams }: CommandCall): number {
  const [text] = args;
  if (text === undefined) throw new ExitRequest(scope.status);
  if (!/^\d+$/.test(text)) {
    streams.write('stderr', `sh: exit: line 0: Illegal number: ${text}\n`);
    throw new ExitRequest(2);
  }
  throw new ExitRequest(Number(text));
}

function* sleepCommand({ args, streams }: CommandCall): Running {
  let ms = 0;
  for (const text of args) {
    const match = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text);
    if (text === 'infinity' || text === 'inf') yield { kind: 'forever' };
    if (match === null) {
      streams.write('stderr', `sleep: invalid number '${text}'\n`);
      return 1;
    }
    ms += Number(match[1]) * (suffixSeconds[match[2] ?? 's'] ?? 1) * 1_000;
  }
  yield { kind: 'sleep', ms };
  return 0;
}

function trapCommand({ args, shell }: CommandCall): number {
  const [action = '', ...names] = args;
  for (const text of names) {
    const name = text === 'EXIT' || text === '0' ? 'EXIT' : signalName(text);
    if (name === undefined) throw new ShellRefusal(`the signal ${text} is not supported`);
    shell.trap(name, action === '' ? 'ignore' : action === '-' ? 'default' : { script: action });
  }
  return 0;
}

function* waitCommand({ args, scope, shell }: CommandCall): Running {
  if (args.length > 0 && args[0] !== String(scope.lastJob))
    throw new ShellRefusal('waiting for one job is not supported');
  yield { kind: 'jobs' };
  const interrupted = shell.takeInterruption();
  return interrupted === undefined ? 0 : 128 + (signalNumber(interrupted) ?? 0);
}

function* killCommand({ args, streams, shell }: CommandCall): Running {
  const signal = args[0]?.startsWith('-') ? signalName(args[0].slice(1)) : 'TERM';
  if (signal === undefined) throw new ShellRefusal(`the signal ${args[0]} is not supported`);
  let status = 0;
  for (const pid of args.filter((arg) => !arg.startsWith('-'))) {
    const sent = shell.kill(Number(pid), signal);
    yield { kind: 'turn' };
    if (sent) continue;
    streams.write('stderr', `sh: can't kill pid ${pid}: No such process\n`);
    status = 1;
  }
  return status;
}

function* execCommand({ args, scope, streams, shell }: CommandCall): Running {
  if (args.length === 0) return 0;
  shell.replaceItself();
  throw new ExitRequest(yield* shell.runCommand(args, scope, streams));
}

function setCommand({ args, scope }: CommandCall): number {
  for (const flag of args) {
    if (flag !== '-e' && flag !== '+e') throw new ShellRefusal(`set ${flag} is not supported`);
    scope.exitOnError = flag === '-e';
  }
  return 0;
}

function exportCommand({ args, scope }: CommandCall): number {
  for (const text of args) {
    const [name = '', ...value] = text.split('=');
    if (value.length > 0) scope.set(name, value.join('='));
    scope.export(name);
  }
  return 0;
}

/** Runs `sh -c script name args...`; without a script it reads standard input, which is empty. */
function* shellCommand({ args, env, scope, streams, host, shell }: CommandCall): Running {
  const [flag, script, name, ...positional] = args;
  if (flag === undefined) {
    if (streams.stdin === undefined && host.stdin === 'open') yield { kind: 'forever' };
    return 0;
  }
  if (flag !== '-c' || script === undefined) throw new ShellRefusal(`sh ${flag} is not supported`);
  const { pid, memoryLimitBytes } = scope;
  const inner = new Scope(env, { name: name ?? 'sh', positional, pid, memoryLimitBytes });
  return yield* shell.runScript(script, inner, streams);
}
