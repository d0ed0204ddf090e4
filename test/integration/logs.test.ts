import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { naiveLog } from '../fakes/naive-log.ts';
import { eventually, isRunning, KubelingNode, type NodePod } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

const signal = new AbortController().signal;
const kubeling = fileURLToPath(new URL('../../kubeling', import.meta.url));

function podOf(name: string, script: string, spec: object = {}) {
  const container = {
    name: 'main',
    image: busyboxImageName,
    command: ['sh', '-c', script],
    volumeMounts: [{ name: 'state', mountPath: '/state' }],
  };
  const volumes = [{ name: 'state', emptyDir: {} }];
  const common = { terminationGracePeriodSeconds: 1, volumes, containers: [container] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { ...common, ...spec } };
}

/**
 * A container script that prints numbered lines, fifty at a time, continues the numbering across
 * restarts, and exits once at each of the given numbers.
 */
function counting(last: number, endsAt: readonly number[] = []): string {
  const ends = endsAt.map((at) => `[ $n = ${at} ] && echo $n >/state/n && exit 1;`).join(' ');
  return `
    trap "exit 0" TERM
    n=$(cat /state/n 2>/dev/null || echo 0)
    while [ $n -lt ${last} ]; do
      i=0
      while [ $i -lt 50 ]; do echo "line $n"; n=$((n+1)); i=$((i+1)); done
      ${ends}
      sleep 0.03
    done
    while true; do sleep 0.1; done`;
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join('');

class Reading {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  out = '';
  err = '';

  constructor(dataDir: string, args: readonly string[]) {
    this.child = spawn(kubeling, ['logs', ...args, '--data-dir', dataDir]);
    this.child.stdout?.setEncoding('latin1').on('data', (text) => {
      this.out += text;
    });
    this.child.stderr?.on('data', (text) => {
      this.err += String(text);
    });
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
  }

  has(line: string): Promise<true> {
    return eventually(
      `${JSON.stringify(line)} to be printed`,
      async () => {
        if (this.out.includes(`${line}\n`)) return true;
        assert.equal(this.child.exitCode, null, `it exited: ${this.err}`);
        return undefined;
      },
      60_000,
      () => `${this.out.slice(-300)}\n${this.err}`,
    );
  }
}

/** A short description of the first difference between the printed and the expected numbers. */
function firstDifference(out: string, expected: string): string | undefined {
  if (out === expected) return undefined;
  const [seen, lines] = [out.split('\n'), expected.split('\n')];
  const at = lines.findIndex((line, index) => line !== seen[index]);
  return `line ${at}: ${JSON.stringify(seen.slice(Math.max(0, at - 2), at + 3))}, ${seen.length} of ${lines.length}`;
}

describe('container logs', { timeout: 300_000, skip: skipReason() }, () => {
  let node: KubelingNode;

  before(async () => {
    node = await KubelingNode.open();
  });

  after(async () => {
    assert.deepEqual(await node?.leave(), []);
  });

  const read = async (...args: readonly string[]) => {
    const reading = new Reading(node.dataDir, args);
    const code = await reading.ended;
    return { code, out: reading.out, err: reading.err };
  };
  const logDirectory = ({ metadata: { name, uid } }: NodePod) =>
    join(node.dataDir, 'logs', `default_${name}_${uid}`, 'main');
  const put = async (name: string, script: string, spec: object = {}) =>
    await node.put(`${name}.yaml`, podOf(name, script, spec));

  /**
   * Rotates a log as the kubelet does: renames it with a timestamp and requests the runtime to open
   * a new one.
   */
  async function rotate(pod: NodePod, path: string, second: number): Promise<string> {
    const stem = `${path}.20260101-${String(second).padStart(6, '0')}`;
    await rename(path, stem);
    const { containers } = await node.cri.listContainers({}, signal);
    const running = containers.find(
      ({ labels, state }) =>
        labels['io.kubernetes.pod.uid'] === pod.metadata.uid && state === 'CONTAINER_RUNNING',
    );
    await node.cri.reopenContainerLog({ containerId: running?.id ?? '' }, signal);
    return stem;
  }

  const compress = async (path: string) => {
    await writeFile(`${path}.tmp`, gzipSync(await readFile(path)));
    await rename(`${path}.tmp`, `${path}.gz`);
    await rm(path);
  };

  it('follows a log through rotations and a container restart without losing or repeating a line', async () => {
    await put('count', counting(10_000, [5_000]));
    const pod = await node.running('count');
    const reading = new Reading(node.dataDir, ['-f', 'count']);
    await reading.has('line 0');
    const stems: string[] = [];
    for (const [restart, from, to] of [
      [0, 0, 5],
      [1, 5, 9],
    ] as const) {
      const path = join(logDirectory(pod), `${restart}.log`);
      for (let thousand = from; thousand < to; thousand++) {
        await reading.has(`line ${thousand * 1_000 + 400}`);
        if (thousand % 2 === 0 && stems.length > 0) await compress(stems.pop() ?? '').catch(() => {});
        stems.push(await rotate(pod, path, thousand));
      }
    }
    await reading.has('line 9999');
    assert.equal(firstDifference(reading.out, numbered(0, 10_000)), undefined);
    await node.take('count.yaml');
    assert.equal(await reading.ended, 0, reading.err);
    assert.equal(firstDifference(reading.out, numbered(0, 10_000)), undefined);
  });

  it('the tail, since, limit-bytes, timestamps and previous options return the matching part of the log files', async () => {
    const long = `head -c 40000 /dev/zero | tr '\\0' x; echo`;
    const script = `
      [ -e /state/n ] || { echo first; echo failed >&2; ${long}; touch /state/n; exit 1; }
      i=0; while [ $i -lt 300 ]; do echo "out $i"; i=$((i+1)); done; ${long}; printf '\\001\\377\\376\\n'; echo err >&2; printf unfinished
      trap "exit 0" TERM; while true; do sleep 0.1; done`;
    await put('many', script);
    const pod = await node.podIs(
      'many',
      'restarted',
      ({ containerStatuses: [main] = [] }) =>
        main !== undefined && isRunning(main) && main.restartCount === 1,
    );
    const path = join(logDirectory(pod), '1.log');
    await eventually('all to be written', async () =>
      (await readFile(path, 'latin1')).includes('err\n') ? true : undefined,
    );
    const stem = await rotate(pod, path, 1);
    await compress(stem);
    const files = async () => {
      const { gunzipSync } = await import('node:zlib');
      return [gunzipSync(await readFile(`${stem}.gz`)), await readFile(path)];
    };
    const same = async (args: readonly string[], wanted: (all: readonly Buffer[]) => Buffer) => {
      const { out, code, err } = await read('many', ...args);
      assert.deepEqual([code, err], [0, ''], args.join(' '));
      const same = out === wanted(await files()).toString('latin1');
      assert.ok(same, `${args.join(' ')}: ${out.length} bytes, ${JSON.stringify(out.slice(-200))}`);
    };
    await same([], (all) => naiveLog(all));
    for (const tailLines of [0, 1, 2, 3, 4, 50, 1_000])
      await same(['--tail', `${tailLines}`], (all) => naiveLog(all, { tailLines }));
    await same(['--limit-bytes', '1234'], (all) => naiveLog(all, { limitBytes: 1_234 }));
    await same(['--timestamps'], (all) => naiveLog(all, { timestamps: true }));
    await same(['--since', '1h', '--tail', '3', '--timestamps', '--limit-bytes', '77'], (all) =>
      naiveLog(all, { tailLines: 3, timestamps: true, limitBytes: 77 }),
    );
    const stamp = naiveLog(await files(), { timestamps: true, tailLines: 20 })
      .toString('latin1')
      .slice(0, 30);
    const sinceNs = BigInt(Date.parse(`${stamp.slice(0, 19)}Z`)) * 1_000_000n + BigInt(stamp.slice(20, 29));
    await same(['--since-time', stamp], (all) => naiveLog(all, { sinceNs }));
    const previous = await readFile(join(logDirectory(pod), '0.log'));
    const { out } = await read('many', '--previous');
    assert.ok(out === naiveLog([previous]).toString('latin1'), `${out.length} bytes`);
    assert.ok(out.includes('first\n') && out.includes('failed\n'));
  });

  it('reports why a container has no log', async () => {
    const pod = await node.running('many');
    const name = pod.metadata.name;
    assert.match((await read('none')).err, /no pod "none"/);
    assert.match((await read('many', '-c', 'other')).err, /no container "other"/);
    assert.equal((await read('many', '--tail', 'x')).code, 1);
    await put('stuck', 'exit 0', {
      containers: [{ name: 'main', image: 'localhost/none:1', imagePullPolicy: 'Never' }],
    });
    await node.podIs(
      'stuck',
      'waiting',
      ({ containerStatuses: [main] = [] }) => main?.state?.waiting?.reason === 'ErrImageNeverPull',
    );
    const stuck = await read('stuck', '-f');
    assert.deepEqual([stuck.code, stuck.out], [1, '']);
    assert.match(stuck.err, /container "main" in pod "stuck-.*" is waiting to start: ErrImageNeverPull/);
    assert.match(
      (await read('stuck', '-p')).err,
      /previous terminated container "main" in pod "stuck-.*" not found/,
    );
    await node.take('stuck.yaml');
    const token = (await readFile(join(node.dataDir, 'kubelet', 'loopback-token'), 'utf8')).trim();
    const { port } = JSON.parse(await readFile(join(node.dataDir, 'up.json'), 'utf8'));
    const ask = async (
      path: string,
      headers: Record<string, string> = { authorization: `Bearer ${token}` },
    ) => {
      const response = await fetch(`http://127.0.0.1:${port}/containerLogs/${path}`, { headers });
      return [response.status, await response.text()];
    };
    assert.deepEqual(await ask(`default/${name}/main`, {}), [401, 'Unauthorized']);
    assert.deepEqual(await ask('default/none/main'), [404, 'pod "none" does not exist']);
    assert.deepEqual(await ask(`default/${name}/x`), [404, `container "x" not found in pod "${name}"`]);
    for (const wrong of [
      'tailLines=-1',
      'limitBytes=0',
      'sinceSeconds=0',
      'sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z',
    ])
      assert.equal((await ask(`default/${name}/main?${wrong}`))[0], 422, wrong);
    assert.equal((await ask(`default/${name}/main?tailLines=x`))[0], 400);
    assert.match(String((await ask(`default/${name}/main?stream=Stdout`))[1]), /PodLogsQuerySplitStreams/);
  });

  it('opens no file except the log itself', async () => {
    const pod = await node.running('many');
    const path = join(logDirectory(pod), '1.log');
    await rename(path, `${path}.aside`);
    const { symlink } = await import('node:fs/promises');
    await symlink('/etc/hostname', path);
    try {
      const { code, out, err } = await read('many');
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, /it is a symlink/);
    } finally {
      await rm(path);
      await rename(`${path}.aside`, path);
    }
    assert.equal((await read('many', '--tail', '0')).code, 0);
  });

  /** How many log files the kubelet has open, and how many inotify watches. */
  async function held(): Promise<readonly [number, number]> {
    const fds = `/proc/${node.pid}/fd`;
    const targets = await Promise.all(
      (await readdir(fds)).map((fd) => readlink(join(fds, fd)).catch(() => '')),
    );
    const infos = await readdir(`/proc/${node.pid}/fdinfo`);
    const texts = await Promise.all(
      infos.map((fd) => readFile(`/proc/${node.pid}/fdinfo/${fd}`, 'utf8').catch(() => '')),
    );
    const logs = join(node.dataDir, 'logs');
    return [
      targets.filter((target) => target.startsWith(logs)).length,
      texts.join('').split('inotify wd').length,
    ];
  }

  it('closes all descriptors of a log follower that is killed, exits or stops reading', async () => {
    const clean = await held();
    const token = (await readFile(join(node.dataDir, 'kubelet', 'loopback-token'), 'utf8')).trim();
    const { port } = JSON.parse(await readFile(join(node.dataDir, 'up.json'), 'utf8'));
    const { name } = (await node.running('many')).metadata;
    const silent = new AbortController();
    const response = await fetch(
      `http://127.0.0.1:${port}/containerLogs/default/${name}/main?follow=true&tailLines=0`,
      { headers: { authorization: `Bearer ${token}` }, signal: silent.signal },
    );
    assert.equal(response.status, 200, 'the response begins before there is output');
    silent.abort();
    const readings = Array.from({ length: 3 }, () => new Reading(node.dataDir, ['-f', 'many']));
    const [killed, interrupted, piped] = readings;
    for (const reading of readings) await reading.has('err');
    assert.ok((await held())[0] >= clean[0] + 3);
    killed?.child.kill('SIGKILL');
    interrupted?.child.kill('SIGINT');
    assert.equal(await interrupted?.ended, 130);
    assert.equal(interrupted?.err, '');
    piped?.child.stdout?.destroy();
    await put('noise', 'true');
    await eventually('all descriptors of the ended followers to be closed', async () => {
      const now = await held();
      // A kubectl logs whose output pipe is closed notices it only at the next write.
      return now[0] <= clean[0] + 1 ? true : undefined;
    });
    piped?.child.kill('SIGTERM');
    await piped?.ended;
    await eventually('all to be closed', async () => {
      const [files, watches] = await held();
      return files === clean[0] && watches === clean[1] ? true : undefined;
    });
    await node.take('noise.yaml');
    await node.take('many.yaml');
  });

  it('shows the logs of several containers together, and exits without an error when its output is closed', async () => {
    const says = (name: string, script: string) => ({
      name,
      image: busyboxImageName,
      command: ['sh', '-c', `${script}; trap "exit 0" TERM; while true; do sleep 0.1; done`],
    });
    const endless = 'while true; do echo again; sleep 0.01; done';
    await put('pair', '', {
      initContainers: [{ ...says('init', ''), command: ['echo', 'prepared'] }],
      containers: [says('one', 'echo 1'), says('two', 'echo 2'), says('noise', endless)],
    });
    const pod = await node.running('pair');
    const mark = (name: string) => `[pod/${pod.metadata.name}/${name}] `;
    const all = await read('pair', '--all-containers', '--prefix', '--tail', '1');
    assert.equal(
      all.out,
      `${mark('init')}prepared\n${mark('one')}1\n${mark('two')}2\n${mark('noise')}again\n`,
    );
    const defaulted = await read('pair');
    assert.deepEqual([defaulted.code, defaulted.out], [0, '1\n']);
    assert.match(defaulted.err, /^Defaulted container "one" out of: /);
    const together = new Reading(node.dataDir, ['-f', 'pair', '--all-containers', '--prefix']);
    await eventually('both', async () =>
      together.out.includes(`${mark('one')}1\n`) && together.out.includes(`${mark('noise')}again\n`)
        ? true
        : undefined,
    );
    together.child.kill('SIGINT');
    assert.equal(await together.ended, 130);
    const line = `'${kubeling}' logs -f pair -c noise --data-dir '${node.dataDir}' | head -n 2; echo "\${PIPESTATUS[*]}"`;
    const piped = spawn('bash', ['-c', line]);
    let output = '';
    for (const stream of [piped.stdout, piped.stderr])
      stream.on('data', (text) => {
        output += String(text);
      });
    await new Promise((resolve) => piped.once('close', resolve));
    assert.equal(output, 'again\nagain\n0 0\n');
    await node.take('pair.yaml');
  });

  it('keeps the termination message from the file or the log, and removes the logs with the pod', async () => {
    const dies = (script: string, fields: object = {}) => ({
      name: 'main',
      image: busyboxImageName,
      command: ['sh', '-c', script],
      ...fields,
    });
    const fallback = { terminationMessagePolicy: 'FallbackToLogsOnError' };
    const noisy = 'i=0; while [ $i -lt 100 ]; do echo "said $i"; i=$((i+1)); done';
    const cases: Readonly<Record<string, readonly [object, string]>> = {
      file: [dies('head -c 5000 /dev/zero | tr "\\0" a >/dev/termination-log; exit 3'), 'a'.repeat(4_096)],
      path: [dies('echo mine >/tmp/why; exit 3', { terminationMessagePath: '/tmp/why' }), 'mine\n'],
      silent: [dies(`${noisy}; exit 3`), ''],
      logged: [
        dies(`${noisy}; exit 3`, fallback),
        Array.from({ length: 80 }, (_, index) => `said ${index + 20}\n`).join(''),
      ],
      long: [dies('head -c 20000 /dev/zero | tr "\\0" b; echo; exit 3', fallback), `${'b'.repeat(2_047)}\n`],
      well: [dies('echo fine; exit 0', fallback), ''],
      both: [dies(`${noisy}; echo mine >/dev/termination-log; exit 3`, fallback), 'mine\n'],
    };
    for (const [name, [container]] of Object.entries(cases))
      await put(name, '', { restartPolicy: 'Never', volumes: [], containers: [container] });
    const directories: string[] = [];
    for (const [name, [, message]] of Object.entries(cases)) {
      const pod = await node.podIs(name, 'over', ({ phase }) => phase === 'Failed' || phase === 'Succeeded');
      const output = pod.status.containerStatuses?.[0]?.state?.terminated?.message ?? '';
      assert.ok(
        output === message,
        `${name} logged ${output.length} bytes: ${JSON.stringify(output.slice(0, 200))}`,
      );
      directories.push(join(logDirectory(pod), '..'));
      await node.take(`${name}.yaml`);
    }
    await eventually('the logs to be removed', async () => {
      const left = await Promise.all(
        directories.map((directory) => readdir(directory).catch(() => undefined)),
      );
      return left.every((names) => names === undefined) ? true : undefined;
    });
  });

  it('continues a log at its last position after kubeling is killed and restarted', async () => {
    await put('long', counting(10_000));
    await node.running('long');
    const reading = new Reading(node.dataDir, ['-f', 'long', '--timestamps']);
    for (const [at, how] of [
      [1_500, 'SIGKILL'],
      [5_000, 'SIGTERM'],
    ] as const) {
      await eventually('more', async () => (reading.out.includes(` line ${at}\n`) ? true : undefined));
      await node.end(how);
      await node.start();
    }
    await eventually(
      'the last line',
      async () => (reading.out.includes(' line 9999\n') ? true : undefined),
      60_000,
    );
    const text = reading.out.replaceAll(/^\S+ /gm, '');
    assert.equal(firstDifference(text, numbered(0, 10_000)), undefined);
    await node.take('long.yaml');
    assert.equal(await reading.ended, 0, reading.err);
  });
});
