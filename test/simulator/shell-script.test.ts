import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import { ContainerFiles } from './container-files.ts';
import { memoryFiles } from './files.ts';
import { type ProcessEnd, SimulatedProcess } from './process.ts';
import { commandLine } from './shell-script.ts';

interface Ran {
  readonly clock: VirtualClock;
  readonly process: SimulatedProcess;
  readonly files: ContainerFiles;
  readonly out: string[];
  end(): ProcessEnd | undefined;
  text(): string;
}

interface RunOptions {
  readonly rank?: 'init' | 'member';
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: 'open' | 'empty';
}

function run(words: readonly string[], options: RunOptions = {}): Ran {
  const line = commandLine(words);
  assert.ok(line.ok, line.ok ? '' : line.why);
  const clock = new VirtualClock();
  const files = new ContainerFiles([], memoryFiles());
  const out: string[] = [];
  let ended: ProcessEnd | undefined;
  const process = new SimulatedProcess(
    {
      clock,
      files,
      pid: 1,
      hostname: 'host',
      env: new Map(Object.entries(options.env ?? {})),
      workingDir: '/',
      memoryLimitBytes: 1 << 20,
      stdin: options.stdin ?? 'empty',
      rank: options.rank ?? 'member',
      write: (stream, text) => out.push(stream === 'stderr' ? `!${text}` : text),
      onEnd(end) {
        assert.equal(ended, undefined, 'a process ends once');
        ended = end;
      },
    },
    line.program,
  );
  process.run();
  return { clock, process, files, out, end: () => ended, text: () => out.join('') };
}

const sh = (script: string, options?: RunOptions) => run(['sh', '-c', script], options);

/** Scripts with the output and exit code that a real busybox returns. */
const table: readonly (readonly [script: string, output: string, exitCode: number])[] = [
  ['echo hello', 'hello\n', 0],
  ['echo out; echo err >&2', 'out\n!err\n', 0],
  ['exit 3', '', 3],
  ['exit 300', '', 44],
  ['exit -1', '!sh: exit: line 0: Illegal number: -1\n', 2],
  ['false; exit', '', 1],
  ['false && echo no; echo $?; true || echo no; echo $A${B}x', '1\nx\n', 0],
  ['echo -n a; echo -e "x\\ty"', 'ax\ty\n', 0],
  ["printf '%s-%d\\n' a 5 b 6", 'a-5\nb-6\n', 0],
  ['printf part; exit 7', 'part', 7],
  ['echo "q $WHO" \'r $WHO\' $WHO', 'q a  b r $WHO a b\n', 0],
  ['set -e; false; echo no', '', 1],
  ['set -e; false || true; if false; then :; fi; echo yes', 'yes\n', 0],
  ['nope-cmd; echo $?', '!sh: nope-cmd: not found\n127\n', 0],
  ['nope-cmd', '!sh: nope-cmd: not found\n', 127],
  ['if [ -f /tmp/x ]; then echo y; else echo n; fi', 'n\n', 0],
  ['test 1 -eq 1 && echo eq; [ a = b ] || echo ne', 'eq\nne\n', 0],
  ['for i in 1 2 3; do echo $i; done', '1\n2\n3\n', 0],
  ['i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done', '0\n1\n2\n', 0],
  ['until false; do break; done; echo ok', 'ok\n', 0],
  ['echo $((1+2*3)) $(( (1+2)*3 )); x=5; echo $x', '7 9\n5\n', 0],
  ['(exit 4); echo $?; { echo g; }; ! true; echo $?', '4\ng\n1\n', 0],
  ['echo a > /tmp/f; echo b >> /tmp/f; cat /tmp/f', 'a\nb\n', 0],
  ['cat /nope; echo $?', "!cat: can't open '/nope': No such file or directory\n1\n", 0],
  ['echo gone > /dev/null; cat < /dev/null; echo here', 'here\n', 0],
  ['echo both 2>&1; nope 2>/dev/null; echo end # comment', 'both\nend\n', 0],
  ['while do done', '!sh: syntax error: unexpected "do"\n', 2],
  ['if then fi', '!sh: syntax error: unexpected "then"\n', 2],
  ["echo 'unterminated", '!sh: syntax error: unterminated quoted string\n', 2],
  ["trap 'exit 3' EXIT; true", '', 3],
  ["trap 'echo usr' USR1; kill -USR1 $$; echo after", 'usr\nafter\n', 0],
  ['kill -9 $$; echo alive', '', 137],
  ['kill -TERM $$; echo alive', '', 143],
  ['X=1 env; export Y=2; printenv Y', 'WHO=a  b\nX=1\n2\n', 0],
  ['echo ${WHO:-none} ${NONE:-none} "${NONE-}"', 'a b none \n', 0],
  ['seq 3; hostname; pwd', '1\n2\n3\nhost\n/\n', 0],
  ['sh -c "echo inner; exit 5"; echo $?', 'inner\n5\n', 0],
  ['echo a;\necho b\n\necho c', 'a\nb\nc\n', 0],
  ['touch /a && test -e /a && rm /a && test ! -e /a && echo gone', 'gone\n', 0],
  ['echo one \\\n two', 'one two\n', 0],
];

for (const [script, output, exitCode] of table) {
  test(`the script ${JSON.stringify(script)} behaves as in a real shell`, () => {
    const ran = sh(script, { env: { WHO: 'a  b' } });
    assert.equal(ran.text(), output);
    assert.equal(ran.end()?.exitCode, exitCode);
  });
}

test('arguments after a shell script become its parameters', () => {
  assert.equal(run(['sh', '-c', 'echo $0 $1 $#', 'name', 'first']).text(), 'name first 1\n');
  assert.equal(run(['sh', '-c', 'for a in "$@"; do echo $a; done', 'n', 'x y', 'z']).text(), 'x y\nz\n');
});

test('a program started without a shell gets its words unchanged', () => {
  const ran = run(['echo', 'hello', '$HOME']);
  assert.equal(ran.text(), 'hello $HOME\n');
  assert.equal(run(['/bin/false']).end()?.exitCode, 1);
});

test('the sleep command takes the given time', async () => {
  const ran = sh('sleep 0.5 && echo slept; sleep 1m; exit 2');
  await ran.clock.advance(499);
  assert.equal(ran.text(), '');
  await ran.clock.advance(1);
  assert.equal(ran.text(), 'slept\n');
  await ran.clock.advance(59_999);
  assert.equal(ran.end(), undefined);
  await ran.clock.advance(1);
  assert.equal(ran.end()?.exitCode, 2);
});

test('the first process of a namespace ignores signals it does not handle', () => {
  const ran = sh('sleep 100', { rank: 'init' });
  ran.process.signal('TERM');
  assert.equal(ran.end(), undefined);
  ran.process.kill();
  assert.deepEqual(ran.end(), { exitCode: 137, cause: 'signal' });
  assert.equal(ran.clock.pendingTimers, 0);
});

test('the first process of a namespace survives its own signals', () => {
  assert.equal(sh('kill -9 $$; kill $$; echo alive', { rank: 'init' }).text(), 'alive\n');
});

test('any other process is killed by a signal it does not handle', () => {
  const ran = run(['sleep', '100']);
  ran.process.signal('TERM');
  assert.equal(ran.end()?.exitCode, 143);
});

test('a trap waits for the program in the foreground', async () => {
  const ran = sh("trap 'exit 5' TERM; sleep 2; echo never", { rank: 'init' });
  await ran.clock.advance(300);
  ran.process.signal('TERM');
  await ran.clock.advance(1_699);
  assert.equal(ran.end(), undefined);
  await ran.clock.advance(1);
  assert.equal(ran.end()?.exitCode, 5);
  assert.equal(ran.text(), '');
});

test('a trap interrupts the wait command', async () => {
  const ran = sh("trap 'echo bye' TERM; sleep 100 & wait; echo after $?");
  await ran.clock.advance(10);
  ran.process.signal('TERM');
  assert.equal(ran.text(), 'bye\nafter 143\n');
  assert.equal(ran.end()?.exitCode, 0);
  assert.equal(ran.clock.pendingTimers, 0);
});

test('a shell script continues after a trap that does not exit', async () => {
  const ran = sh("trap 'echo bye' TERM; sleep 1; echo after $?");
  ran.process.signal('TERM');
  await ran.clock.advance(1_000);
  assert.equal(ran.text(), 'bye\nafter 0\n');
});

test('an ignored signal has no effect on a shell script', async () => {
  const ran = sh("trap '' TERM; while true; do sleep 1; done");
  ran.process.signal('TERM');
  await ran.clock.advance(5_000);
  assert.equal(ran.end(), undefined);
});

test('the wait command ends when the background jobs are done', async () => {
  const ran = sh('sleep 1 && echo job & wait; echo end');
  await ran.clock.advance(1_000);
  assert.equal(ran.text(), 'job\nend\n');
});

test('the kill command can kill a background job', async () => {
  const ran = sh('sleep 100 & kill $!; wait; echo end');
  await ran.clock.advance(0);
  assert.equal(ran.text(), 'end\n');
  assert.equal(ran.clock.pendingTimers, 0);
});

test('a shell that was replaced by exec has no traps', async () => {
  const ran = sh("trap 'exit 5' TERM; exec sleep 100");
  ran.process.signal('TERM');
  assert.equal(ran.end()?.exitCode, 143);
});

test('an endless loop without waits does not stop time', async () => {
  const ran = sh('while true; do :; done');
  await ran.clock.advance(100);
  assert.equal(ran.end(), undefined);
  ran.process.kill();
  assert.equal(ran.clock.pendingTimers, 0);
});

test('a script that exceeds its memory limit is killed', async () => {
  const ran = sh('x=a; while true; do x=$x$x; done');
  await ran.clock.advance(10);
  assert.deepEqual(ran.end(), { exitCode: 137, cause: 'oom' });
});

test('programs that read standard input wait only if a client may write to it', () => {
  assert.equal(run(['cat']).end()?.exitCode, 0);
  assert.equal(run(['sh']).end()?.exitCode, 0);
  assert.equal(run(['cat'], { stdin: 'open' }).end(), undefined);
  assert.equal(run(['tail', '-f', '/dev/null']).end(), undefined);
});

test('a shell script with unsupported syntax is rejected before it starts', () => {
  const refused = [
    'a | b',
    'echo $(date)',
    'echo `date`',
    'ls *',
    'case x in esac',
    'cat <<EOF',
    'f() { :; }',
    'grep x y',
    'echo ${X%y}',
    'cd ~',
  ];
  for (const script of refused) {
    const line = commandLine(['sh', '-c', script]);
    assert.ok(!line.ok && line.why.includes('not supported'), script);
  }
  const program = commandLine(['wget', 'x']);
  assert.ok(!program.ok && program.why.includes('the command wget is not supported'));
});

test('an unsupported feature that is found while a script runs ends the process with an explanation', () => {
  const ran = sh('test -d /tmp; echo no');
  assert.equal(ran.end()?.exitCode, 125);
  assert.match(ran.text(), /test -d is not supported/);
});

test('a missing program is reported as a real runtime reports it', () => {
  assert.deepEqual(commandLine(['/nope']), {
    ok: false,
    why: 'exec: "/nope": stat /nope: no such file or directory',
  });
  assert.deepEqual(commandLine(['nope']), {
    ok: false,
    why: 'exec: "nope": executable file not found in $PATH',
  });
  assert.deepEqual(commandLine([]), { ok: false, why: 'args must not be empty' });
});

test('no script makes the simulated shell throw', async () => {
  const piece = fc.constantFrom(
    ...[
      'echo',
      'exit 3',
      'sleep 1',
      ';',
      '&&',
      '||',
      '&',
      '|',
      '$',
      '{',
      '}',
      '(',
      ')',
      '"',
      "'",
      '\\',
      ' ',
      '\n',
    ],
    ...[
      'if',
      'then',
      'fi',
      'while',
      'do',
      'done',
      'trap',
      'wait',
      '>',
      '<',
      '2>&1',
      '$((',
      '))',
      '[',
      ']',
      '!',
      '#',
    ],
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
      const line = commandLine(['sh', '-c', pieces.join(' ')]);
      if (!line.ok) return;
      const ran = sh(pieces.join(' '));
      await ran.clock.advance(50);
      ran.process.kill();
      assert.equal(ran.clock.pendingTimers, 0);
    }),
    { numRuns: 500 },
  );
});
