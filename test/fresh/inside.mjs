/**
 * The steps of a new user, run on a fresh machine by the Node.js of its distribution: clones the
 * repository, runs `npm start` to its ready line, runs a pod, removes everything, and runs `npm
 * test`. Plain JavaScript for Node.js 18.
 *
 *   node inside.mjs REPOSITORY COMMIT [start] [test]
 */
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { createInterface } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';

const home = '/root/kubeling';
const minuteMs = 60_000;
const summary = [];

function say(text) {
  console.log(`fresh: ${text}`);
}

function seconds(sinceMs) {
  return `${((performance.now() - sinceMs) / 1_000).toFixed(0)} s`;
}

function run(file, args, options = {}) {
  const done = spawnSync(file, args, { encoding: 'utf8', timeout: 5 * minuteMs, ...options });
  if (done.status === 0) return done.stdout;
  const why = done.error?.message ?? `exit code ${done.status ?? done.signal}`;
  throw new Error(`${[file, ...args].join(' ')}: ${why}\n${done.stdout ?? ''}${done.stderr ?? ''}`);
}

/**
 * Starts a command and copies its lines to our output. Returns the process and a promise of its
 * exit.
 */
function start(file, args, onLine) {
  const child = spawn(file, args, { cwd: home, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      console.log(`  ${line}`);
      onLine(line);
    });
  }
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
  return { child, ended };
}

async function within(limitMs, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: timeout after ${limitMs / 1_000} s`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function waitFor(what, limitMs, check) {
  const until = performance.now() + limitMs;
  let last;
  while (performance.now() < until) {
    try {
      last = await check();
      if (last === true) return;
    } catch (error) {
      last = error.message;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`${what}: timeout after ${limitMs / 1_000} s; last result: ${last}`);
}

/** Returns the installed packages with their sizes in KiB. */
function packages() {
  const lines = run('dpkg-query', ['-W', '-f', '${db:Status-Abbrev} ${Package} ${Installed-Size}\n']).split(
    '\n',
  );
  const rows = lines.map((line) => line.trim().split(/\s+/)).filter(([status]) => status === 'ii');
  return new Map(rows.map(([, name, size]) => [name, Number(size)]));
}

async function step(name, work) {
  const [begun, before] = [performance.now(), packages()];
  say(`${name} begins`);
  const notes = (await work()) ?? [];
  const added = [...packages()].filter(([package_]) => !before.has(package_));
  const size = added.reduce((sum, [, kib]) => sum + kib, 0);
  const needed = added.map(([package_]) => package_).join(' ');
  summary.push(`${name}: passed after ${seconds(begun)}`);
  summary.push(
    `  packages it installed: ${added.length === 0 ? 'none' : `${added.length}, ${Math.round(size / 1024)} MiB: ${needed}`}`,
  );
  for (const note of notes) summary.push(`  ${note}`);
}

function clone(repository, commit) {
  run('git', ['-c', 'safe.directory=*', 'clone', '--quiet', '--no-checkout', repository, home]);
  run('git', ['-C', home, 'checkout', '--quiet', '--detach', commit]);
  return [`commit ${commit.slice(0, 12)}`];
}

async function startKubeling() {
  const begun = performance.now();
  let readyAt;
  let isReady;
  const ready = new Promise((resolve) => {
    isReady = resolve;
  });
  const { child, ended } = start('npm', ['start'], (line) => {
    if (!/^ready\s/.test(line)) return;
    readyAt = seconds(begun);
    isReady();
  });
  const early = ended.then((code) => {
    if (readyAt === undefined) throw new Error(`npm start exited with ${code} before it was ready`);
    return code;
  });
  await within(15 * minuteMs, 'npm start is ready', Promise.race([ready, early]));
  const podAfter = await runPod();
  // Interrupts npm and its children, as Ctrl-C does.
  process.kill(-child.pid, 'SIGINT');
  await within(2 * minuteMs, 'npm start ends after SIGINT', early);
  console.log(run('./kubeling', ['down', '--all'], { cwd: home }));
  const left = leftovers();
  if (left.length > 0) throw new Error(`kubeling down --all left behind:\n  ${left.join('\n  ')}`);
  return [`ready after ${readyAt}`, `the pod answered after ${podAfter}`, 'down --all left nothing behind'];
}

async function runPod() {
  const begun = performance.now();
  copyFileSync(`${home}/examples/web.yaml`, '/var/lib/kubeling/manifests/web.yaml');
  await waitFor('the pod web answers over HTTP', 2 * minuteMs, async () => {
    const story = run('./kubeling', ['explain', 'web'], { cwd: home });
    const address = /\b(\d+\.\d+\.\d+\.\d+)\b/.exec(story)?.[1];
    return address === undefined ? 'it has no address' : await answers(address);
  });
  return seconds(begun);
}

function answers(address) {
  return new Promise((resolve, reject) => {
    const request = get({ host: address, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? true : `status ${response.statusCode}`);
    });
    request.once('timeout', () => request.destroy(new Error('no response')));
    request.once('error', reject);
  });
}

/**
 * Returns the leftovers of kubeling and its containerd; no other containerd runs on this machine.
 */
function leftovers() {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const processes = pids
    .map(commandLine)
    .filter((line) => /containerd|kubeling|runc/.test(line) && !line.includes('inside.mjs'));
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes('/var/lib/kubeling'));
  const links = readdirSync('/sys/class/net').filter(
    (name) => name.startsWith('klg') || name.startsWith('veth'),
  );
  const files = ['/var/lib/kubeling'].filter((path) => existsSync(path));
  return [...processes, ...mounts, ...links, ...files];
}

function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

async function runTests() {
  const [skipped, counts] = [[], []];
  const { ended } = start('npm', ['test'], (line) => {
    const plain = stripVTControlCharacters(line);
    if (/^\s*﹣ /.test(plain)) skipped.push(plain.trim());
    if (/^ℹ (tests|pass|fail|skipped) /.test(plain)) counts.push(plain.slice(2));
  });
  const code = await within(90 * minuteMs, 'npm test', ended);
  if (code !== 0) throw new Error(`npm test exited with ${code}`);
  return [counts.join(', '), ...skipped.map((line) => `skipped: ${line}`)];
}

const [repository, commit, ...phases] = process.argv.slice(2);
const phasesByName = new Map([
  ['start', () => step('npm start, a pod, kubeling down --all', startKubeling)],
  ['test', () => step('npm test', runTests)],
]);

try {
  say(
    `${readFileSync('/etc/os-release', 'utf8').match(/^PRETTY_NAME="?([^"\n]*)/m)?.[1]}, Node.js ${process.versions.node}, npm ${run('npm', ['--version']).trim()}, ${packages().size} packages`,
  );
  await step('git clone', () => clone(repository, commit));
  for (const phase of phases) await phasesByName.get(phase)();
} catch (error) {
  summary.push(`FAILED: ${error.message}`);
  process.exitCode = 1;
}
say('summary');
for (const line of summary) console.log(`  ${line}`);
