import assert from 'node:assert/strict';
import { it, test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { instant } from '../clock.ts';
import { KubelingError } from '../errors.ts';
import type { LogFormat, LogRecord } from './format.ts';
import { collectLogs, createLogger, RepeatFilter, rateLimitedErrors } from './logger.ts';
import { parseModuleLevels, Verbosity } from './verbosity.ts';

// A local time, so that the test gives the same text in every time zone.
const startMs = new Date(2026, 0, 2, 15, 4, 5, 60).getTime();

function setUp(format: LogFormat, verbosity = new Verbosity(0)) {
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line) };
  const logger = createLogger({ clock: new VirtualClock({ startMs }), sink, format, verbosity, pid: 123 });
  return { lines, logger, last: () => lines.at(-1) ?? '' };
}

const withoutLine = (line: string) => line.replace(/(logger\.test\.ts):\d+/, '$1:1');

test('text log lines have the format of klog', () => {
  const { logger, last } = setUp('text');
  logger.info('Pod started', { pod: 'ns/web', restarts: 2, ready: true, labels: { app: 'web' } });
  assert.equal(
    withoutLine(last()),
    'I0102 15:04:05.060000     123 logger.test.ts:1] "Pod started" pod="ns/web" restarts=2 ready=true labels={"app":"web"}',
  );
  logger.warn('Careful');
  assert.match(last(), /^W0102 .*\] "Careful"$/);
});

test('the caller in a log line is the line that called the logger, for every method', () => {
  const { lines, logger } = setUp('text', new Verbosity(4));
  const here = Number(/logger\.test\.ts:(\d+)/.exec(new Error().stack ?? '')?.[1]);
  logger.info('1');
  logger.warn('2');
  logger.error('3', undefined);
  logger.v(4)?.info('4');
  logger.child({}).info('5');
  const found = lines.map((line) => Number(/logger\.test\.ts:(\d+)\]/.exec(line)?.[1]) - here);
  assert.deepEqual(found, [1, 2, 3, 4, 5]);
});

test('errors carry message, causes, code and details', () => {
  const { logger, last } = setUp('text');
  const error = new KubelingError('CRI_UNAVAILABLE', 'Cannot reach the runtime', {
    cause: new Error('refused'),
    details: { socket: '/run/c.sock' },
  });
  logger.error('Sync failed', error, { pod: 'ns/web' });
  assert.match(
    last(),
    /^E.*"Sync failed" err="Cannot reach the runtime: refused" errCode="CRI_UNAVAILABLE" errDetails=\{"socket":"\/run\/c\.sock"\} pod="ns\/web"$/,
  );
});

test('only a bug is logged with its stack', () => {
  const { logger, last } = setUp('text');
  logger.error('x', new TypeError('oops'));
  assert.match(last(), /err="oops" errStack="TypeError: oops\\n {4}at /);
  logger.error('x', new KubelingError('CANCELLED', 'stop'));
  assert.doesNotMatch(last(), /errStack|errDetails/);
  logger.error('x', undefined);
  assert.match(last(), /\] "x"$/);
});

test('JSON lines have the same keys as the JSON log of the Go kubelet', () => {
  const { logger, last } = setUp('json', new Verbosity(4));
  logger.v(4)?.info('Pod started', { pod: 'ns/web' });
  const { caller, ...rest } = JSON.parse(last());
  assert.deepEqual(rest, { ts: startMs, msg: 'Pod started', v: 4, pod: 'ns/web' });
  assert.match(caller, /^logging\/logger\.test\.ts:\d+$/);
  logger.error('Failed', new KubelingError('CANCELLED', 'stop'));
  const failed = JSON.parse(last());
  assert.equal(failed.err, 'stop');
  assert.equal('v' in failed, false);
});

test('fields cannot overwrite the keys of the record', () => {
  const { logger, last } = setUp('json');
  logger.info('real', { msg: 'forged', ts: 0, v: 9 });
  const record = JSON.parse(last());
  assert.deepEqual([record.msg, record.ts, record.v], ['real', startMs, 0]);
  assert.deepEqual([record.msg_, record.ts_, record.v_], ['forged', 0, 9]);
});

test('fields cannot overwrite the details of an error', () => {
  const { logger, last } = setUp('text');
  logger.error('x', new KubelingError('CANCELLED', 'real'), { err: 'forged', errCode: 'forged' });
  assert.match(last(), /"x" err="real" errCode="CANCELLED" err_="forged" errCode_="forged"$/);
});

test('verbose lines are logged only if enabled, by level or by file', () => {
  const verbosity = new Verbosity(1);
  const { lines, logger } = setUp('text', verbosity);
  logger.v(2)?.info('hidden');
  verbosity.setModules(parseModuleLevels('logger.test=2'));
  logger.v(2)?.info('enabled by file');
  logger.v(3)?.info('hidden');
  verbosity.setModules([]);
  verbosity.setLevel(2);
  logger.v(2)?.info('enabled by level');
  assert.deepEqual(
    lines.map((line) => /"(.*)"/.exec(line)?.[1]),
    ['enabled by file', 'enabled by level'],
  );
});

test('child loggers add fields, whose values are read when the child is created; a later field replaces an earlier field of the same name', () => {
  const { logger, last } = setUp('text');
  const list = ['a'];
  const child = logger.child({ pod: 'ns/web', list }).child({ container: 'c' });
  list.push('b');
  child.info('x', { container: 'd' });
  assert.match(last(), /"x" pod="ns\/web" list=\["a"\] container="d"$/);
  logger.info('y');
  assert.match(last(), /"y"$/);
});

test('secrets are removed from messages, fields, bound fields and errors', () => {
  for (const format of ['text', 'json'] as const) {
    const { lines, logger } = setUp(format);
    const error = new KubelingError('CRI_FAILED', 'pull with token=s3cret', {
      details: { password: 's3cret' },
    });
    logger
      .child({ token: 's3cret' })
      .error('Authorization: Bearer s3cret', error, { url: 'http://u:s3cret@h/' });
    assert.equal(lines.length, 1);
    assert.doesNotMatch(lines.join(), /s3cret/);
  }
});

test('one record is one line without terminal control characters', () => {
  const evil = 'a\nb\r\u001b[2J\u009b\u202e\u2028\u0000\ud800"\\';
  for (const format of ['text', 'json'] as const) {
    const { logger, last } = setUp(format);
    logger.info(evil, { [evil]: evil, list: [evil] });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    assert.doesNotMatch(last(), /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\ud800]/);
    if (format === 'json') assert.equal(JSON.parse(last())[evil], evil);
    else assert.ok(last().includes(String.raw`"a\nb\r\x1b[2J\u009b\u202e\u2028\x00\ud800\"\\"`));
  }
});

test('a sink that throws does not affect the caller', () => {
  const sink = {
    write: () => {
      throw new Error('full');
    },
  };
  createLogger({ clock: new VirtualClock(), sink, format: 'text', verbosity: new Verbosity(0) }).info('x');
});

test('logging never throws and always writes one line that can be parsed', () => {
  const getter = {
    get inside(): never {
      throw new Error('no');
    },
  };
  const circular: unknown[] = [];
  circular.push(circular);
  const anything = fc.oneof(
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSet: true }),
    fc.constantFrom<unknown>(getter, circular, Symbol('s'), new Proxy({}, { get: () => assert.fail('no') })),
  );
  const text = setUp('text', new Verbosity(9));
  const json = setUp('json', new Verbosity(9));
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.dictionary(fc.string(), anything),
      anything,
      (message, fields, error) => {
        for (const { logger, lines, last } of [text, json]) {
          lines.length = 0;
          logger.child(fields).error(message, error, fields);
          logger.v(3)?.info(message, fields);
          assert.equal(lines.length, 2);
          assert.equal(last().includes('\n'), false);
        }
        assert.equal(typeof JSON.parse(json.last()).msg, 'string');
      },
    ),
  );
});

test('collectLogs stores records instead of lines for tests', () => {
  const { logger, records } = collectLogs(new VirtualClock({ startMs: 7 }));
  logger.child({ pod: 'a' }).v(5)?.info('seen', { n: 1 });
  const [record] = records;
  assert.deepEqual(
    [record?.message, record?.level, record?.time, record?.fields],
    ['seen', 5, 7, { pod: 'a', n: 1 }],
  );
});

const record = (parts: Partial<LogRecord> = {}): LogRecord => ({
  severity: 'error',
  level: 0,
  time: instant(0),
  caller: { path: 'a.ts', line: 1 },
  message: 'Cannot do it',
  error: { err: 'too early' },
  fields: { pod: 'a' },
  ...parts,
});

/** Returns which repetitions of one warning are logged, as numbers counted from 1. */
function told(
  repeats: RepeatFilter,
  { count, everyMs }: { readonly count: number; readonly everyMs: number },
) {
  return Array.from({ length: count }, (_, index) => index + 1).filter(
    (number) => repeats.pass(record(), number * everyMs) !== undefined,
  );
}

it('identical warnings are logged ever more rarely, with the number of repetitions', () => {
  const repeats = new RepeatFilter();
  assert.deepEqual(told(repeats, { count: 100, everyMs: 1_000 }), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]);
  for (let number = 101; number < 128; number++) assert.equal(repeats.pass(record(), 101_000), undefined);
  assert.deepEqual(repeats.pass(record(), 101_000)?.fields, { pod: 'a', times: 128 });
});

it('a warning that keeps repeating is logged at least every ten minutes', () => {
  const numbers = told(new RepeatFilter(), { count: 3_600, everyMs: 1_000 });
  const late = numbers.filter((number) => number > 600);
  assert.ok(late.length >= 5 && late.length <= 10, late.join());
  assert.ok(numbers.length < 25);
});

it('a warning that did not occur for five minutes counts as new', () => {
  const repeats = new RepeatFilter();
  told(repeats, { count: 10, everyMs: 1_000 });
  assert.equal(repeats.pass(record(), 11_000), undefined);
  assert.deepEqual(repeats.pass(record(), 311_000), record());
});

it('different records, and records that are not warnings, are always logged', () => {
  const repeats = new RepeatFilter();
  for (let number = 0; number < 1_000; number++) {
    const rest: readonly LogRecord[] = [
      record({ message: `Cannot do ${number}` }),
      record({ fields: { pod: `${number}` } }),
      record({ error: { err: `${number}` } }),
      record({ severity: 'info' }),
    ];
    for (const other of rest) assert.equal(repeats.pass(other, 0), other);
  }
});

test('logs a limited number of errors in each period, and how many were suppressed', async () => {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const limited = rateLimitedErrors(logs.logger, clock, { records: 2, perMs: 1_000 });
  for (let count = 0; count < 100; count++) limited.error('Failed', new Error('bad'), { count });
  assert.equal([...logs.records].length, 2);
  await clock.advance(1_000);
  limited.error('Failed', new Error('bad'));
  limited.error('Failed', new Error('bad'));
  assert.deepEqual(
    [...logs.records].map(({ fields }) => fields?.['notLogged']),
    [undefined, undefined, 98, undefined],
  );
});
