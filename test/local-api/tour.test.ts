import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { freePorts } from '../free-ports.ts';
import { eventually } from '../kubeling-node.ts';
import { LocalCluster } from './local-cluster.ts';
import { tourCommands, withoutKubectl } from './tour-commands.ts';

const web = 'examples/web.yaml';
const image = 'localhost/kubeling/busybox:1';
const nodeName = hostname().toLowerCase();

/** The rows of a table below its header, each as a list of its cells. */
function rows(table: string): readonly (readonly string[])[] {
  return table
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s{2,}/));
}

/**
 * Runs the kubectl tour of docs/kubectl-without-a-cluster.md with the real kubectl. Each step
 * depends on the previous ones.
 */
describe('kubectl against kubeling up', { timeout: 600_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;

  before(async () => {
    cluster = await LocalCluster.open();
  });

  after(async () => {
    assert.deepEqual(await cluster?.leave(), []);
  });

  it('kubeling up prints the kubeconfig and first commands, and only the owner can read the kubeconfig', async () => {
    assert.match(cluster.node.out, /^api .* answers at https:\/\/127\.0\.0\.1:\d+, its kubeconfig is /m);
    assert.equal(cluster.node.out.match(/^try .*kubectl --kubeconfig/gm)?.length, 3);
    assert.equal((await stat(cluster.kubeconfig)).mode & 0o777, 0o600);
    const status = await cluster.node.command('status');
    assert.match(status, /^api +answers at https:\/\/127\.0\.0\.1/m);
  });

  it('top node: shows usage immediately', async () => {
    const [row] = rows(await cluster.kubectl('top', 'node'));
    assert.equal(row?.[0], nodeName);
    assert.match(row?.[1] ?? '', /^\d+m$/);
    assert.match(row?.[3] ?? '', /^\d+Mi$/);
  });

  it('get nodes: shows one ready node', async () => {
    const [row] = rows(await cluster.kubectl('get', 'nodes'));
    assert.deepEqual(row?.slice(0, 3), [nodeName, 'Ready', '<none>']);
    assert.match(row?.[4] ?? '', /^v1\.36/);
    assert.match(await cluster.kubectl('version'), /Server Version: v1\.36/);
  });

  it('apply -f: the pods run, a watch reports them, and a second apply changes nothing', async () => {
    const watch = cluster.start(['get', 'pods', '-w']);
    assert.equal(
      await cluster.kubectl('apply', '-f', 'examples/'),
      'configmap/greeting created\npod/greeter created\npod/web created\n',
    );
    await watch.prints(/web +0\/1 +Pending[\s\S]*web +1\/1 +Running/);
    watch.child.kill('SIGINT');
    await watch.ended;
    const version = () =>
      cluster.kubectl('get', 'pod', 'greeter', '-o', 'jsonpath={.metadata.resourceVersion}');
    await cluster.kubectl('wait', '--for=condition=Ready', 'pod/greeter', '--timeout=60s');
    const before = await version();
    // kubectl apply sends the order of volume mounts; the server has added a mount, so kubectl
    // treats the order as changed.
    assert.match(
      await cluster.kubectl('apply', '-f', 'examples/'),
      /^configmap\/greeting unchanged\npod\/greeter configured\npod\/web unchanged\n$/,
    );
    assert.equal(await version(), before);
    for (const name of ['web', 'greeter'])
      assert.equal(
        await cluster.kubectl('wait', '--for=condition=Ready', `pod/${name}`),
        `pod/${name} condition met\n`,
      );
    const wide = rows(await cluster.kubectl('get', 'pods', '-o', 'wide')).find(([name]) => name === 'web');
    assert.deepEqual(wide?.slice(0, 4), ['web', '1/1', 'Running', '0']);
    assert.equal(wide?.[6], nodeName);
  });

  it('describe: shows the pod with its events, and the node with its pods', async () => {
    const pod = await cluster.until('the events of the pod', ['describe', 'pod', 'web'], (out) =>
      ['Scheduled', 'Pulled', 'Created', 'Started'].every((reason) => out.includes(reason)),
    );
    assert.match(pod, /^Status: +Running$/m);
    assert.match(pod, /^QoS Class: +Burstable$/m);
    const node = await cluster.kubectl('describe', 'node', nodeName);
    assert.match(node, /^Non-terminated Pods: +\(2 in total\)$/m);
    assert.match(node, /default +web/);
    assert.match(node, /HolderIdentity: +/);
    assert.match(await cluster.kubectl('events'), /Normal +Started +Pod\/web/);
    assert.match(await cluster.kubectl('get', 'events'), /Started +pod\/web/);
  });

  it('run: creates a pod from arguments, and logs shows and follows its log', async () => {
    const script =
      'trap "exit 0" TERM; for i in 1 2 3; do echo line $i; done; while true; do sleep 0.2; date +%s; done';
    const created = await cluster.kubectl('run', 'talker', `--image=${image}`, '--', 'sh', '-c', script);
    assert.equal(created, 'pod/talker created\n');
    await cluster.kubectl('wait', '--for=condition=Ready', 'pod/talker', '--timeout=60s');
    await cluster.until('its first lines', ['logs', 'talker'], (out) =>
      out.startsWith('line 1\nline 2\nline 3\n'),
    );
    assert.equal((await cluster.kubectl('logs', 'talker', '--tail=2')).trim().split('\n').length, 2);
    assert.match(await cluster.kubectl('logs', 'talker', '--timestamps', '--tail=1'), /^\d{4}-\d\d-\d\dT/);
    const follow = cluster.start(['logs', '-f', 'talker']);
    await follow.prints(/line 3\n(?:\d+\n){4}/);
    follow.child.kill('SIGINT');
    await follow.ended;
    const greeter = cluster.start(['logs', '-f', 'greeter']);
    await greeter.prints(/(?:good day, and now: good day\n){3}/);
    greeter.child.kill('SIGINT');
    await greeter.ended;
    const wrong = await cluster.attempt(['logs', 'talker', '-c', 'nobody']);
    assert.match(wrong.stderr, /container nobody is not valid for pod talker/);
  });

  it('exec: forwards input and output and returns the exit code of the command', async () => {
    assert.equal(await cluster.kubectl('exec', 'web', '--', 'echo', 'hello'), 'hello\n');
    assert.equal(await cluster.feed('through\n', 'exec', '-i', 'web', '--', 'cat'), 'through\n');
    const failed = await cluster.attempt(['exec', 'web', '--', 'sh', '-c', 'echo bad >&2; exit 7']);
    assert.equal(failed.code, 7);
    assert.match(failed.stderr, /^bad/m);
    const spdy = cluster.start(['exec', 'web', '--', 'echo', 'old way'], {
      KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false',
    });
    spdy.child.stdin.end();
    assert.equal((await spdy.ended).stdout, 'old way\n');
    const missing = await cluster.attempt(['exec', 'nobody', '--', 'true']);
    assert.match(missing.stderr, /pods "nobody" not found/);
  });

  it('exec -it: opens a shell in a terminal', async () => {
    const shell = cluster.startInTerminal('exec', '-it', 'web', '--', 'sh');
    shell.child.stdin.write('echo $((40+2)); test -t 0 && echo terminal\n');
    await shell.prints(/42\r\nterminal/);
    shell.child.stdin.end('exit 3\n');
    assert.equal((await shell.ended).code, 3);
  });

  it('port-forward: the port of the pod is reachable on this machine', async () => {
    for (const websockets of ['true', 'false']) {
      const [port] = await freePorts(1);
      const forward = cluster.start(['port-forward', 'pod/web', `${port}:80`], {
        KUBECTL_PORT_FORWARD_WEBSOCKETS: websockets,
      });
      await forward.prints(/Forwarding from 127\.0\.0\.1/);
      for (let index = 0; index < 3; index++) {
        const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
        assert.equal(await response.text(), 'hello from kubeling\n');
      }
      forward.child.kill('SIGINT');
      await forward.ended;
    }
  });

  it('cp: copies files in and out', async () => {
    const [sent, back] = [join(cluster.scratch, 'sent'), join(cluster.scratch, 'back')];
    const content = Buffer.alloc(2_000_000, 'kubeling ').toString();
    await writeFile(sent, content);
    await cluster.kubectl('cp', sent, 'web:/tmp-file');
    await cluster.kubectl('cp', 'web:/tmp-file', back);
    assert.equal(await readFile(back, 'utf8'), content);
    await cluster.kubectl('cp', 'README.md', 'web:/www/readme');
    const there = await cluster.kubectl('exec', 'web', '--', 'head', '-n', '1', '/www/readme');
    assert.equal(there, '# kubeling\n');
  });

  it('create: creates configmap, secret, namespace, serviceaccount and token', async () => {
    await cluster.kubectl('create', 'configmap', 'colours', '--from-literal=sky=blue');
    assert.deepEqual(rows(await cluster.kubectl('get', 'cm', 'colours'))[0]?.slice(0, 2), ['colours', '1']);
    await cluster.kubectl('create', 'secret', 'generic', 'quiet', '--from-literal=word=shh');
    const secret = await cluster.kubectl('get', 'secret', 'quiet', '-o', 'jsonpath={.data.word}');
    assert.equal(Buffer.from(secret, 'base64').toString(), 'shh');
    await cluster.kubectl('create', 'namespace', 'elsewhere');
    await cluster.kubectl('create', 'serviceaccount', 'robot', '-n', 'elsewhere');
    assert.equal((await cluster.kubectl('create', 'token', 'robot', '-n', 'elsewhere')).split('.').length, 3);
    const again = await cluster.attempt(['create', 'configmap', 'colours']);
    assert.match(again.stderr, /configmaps "colours" already exists/);
  });

  it('pods: containers read their volumes and variables, and their token has no rights', async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'reader' },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'main',
            image,
            command: ['sh', '-c', 'cat /colours/sky; echo " $WORD"; sleep 1000'],
            env: [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'quiet', key: 'word' } } }],
            volumeMounts: [{ name: 'colours', mountPath: '/colours' }],
          },
        ],
        volumes: [{ name: 'colours', configMap: { name: 'colours' } }],
      },
    };
    await cluster.feed(JSON.stringify(pod), 'apply', '-f', '-');
    await cluster.until('what it reads', ['logs', 'reader'], (out) => out === 'blue shh\n');
    const dir = '/var/run/secrets/kubernetes.io/serviceaccount';
    const token = await cluster.kubectl('exec', 'reader', '--', 'cat', `${dir}/token`);
    const ca = await cluster.kubectl('exec', 'reader', '--', 'cat', `${dir}/ca.crt`);
    assert.match(ca, /BEGIN CERTIFICATE/);
    const refused = await cluster.attempt([
      '--kubeconfig=/dev/null',
      `--server=${await cluster.url()}`,
      '--insecure-skip-tls-verify',
      `--token=${token}`,
      'get',
      'pods',
    ]);
    assert.match(
      refused.stderr,
      /pods is forbidden: User "system:serviceaccount:default:default" cannot list/,
    );
  });

  it('edit, patch in three formats, label and annotate change objects', async () => {
    const edit = cluster.start(['edit', 'configmap', 'greeting'], { KUBE_EDITOR: 'sed -i s/day/evening/' });
    edit.child.stdin.end();
    const edited = await edit.ended;
    assert.match(edited.stdout, /configmap\/greeting edited/, edited.stderr);
    const data = (name: string) => cluster.kubectl('get', 'cm', name, '-o', 'jsonpath={.data}');
    assert.deepEqual(JSON.parse(await data('greeting')), { words: 'good evening' });
    await cluster.until('the greeter to print it', ['logs', 'greeter', '--tail=1'], (out) =>
      out.endsWith('and now: good evening\n'),
    );
    const patch = ['patch', 'configmap', 'colours'];
    await cluster.kubectl(...patch, '-p', '{"data":{"sea":"deep"}}');
    assert.deepEqual(JSON.parse(await data('colours')), { sea: 'deep', sky: 'blue' });
    await cluster.kubectl(...patch, '--type=merge', '-p', '{"data":{"sea":null}}');
    const replace = '[{"op":"replace","path":"/data/sky","value":"red"}]';
    await cluster.kubectl(...patch, '--type=json', '-p', replace);
    assert.deepEqual(JSON.parse(await data('colours')), { sky: 'red' });
    await cluster.kubectl('label', 'pod', 'web', 'tier=front');
    assert.match(await cluster.kubectl('get', 'pods', '-l', 'tier=front', '-o', 'name'), /^pod\/web$/m);
    await cluster.kubectl('annotate', 'pod', 'web', 'note=kept');
    const note = await cluster.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.annotations.note}');
    assert.equal(note, 'kept');
    await cluster.kubectl('label', 'pod', 'web', 'tier-');
  });

  it('diff, set and replace show and change objects', async () => {
    const diff = await cluster.attempt(['diff', '-f', 'examples/']);
    assert.equal(diff.code, 1, diff.stderr);
    assert.match(diff.stdout, /^- +words: good evening\n\+ +words: good day$/m);
    assert.equal((await cluster.attempt(['diff', '-f', web])).code, 0);
    const refused = await cluster.attempt(['set', 'env', 'pod/web', 'A=b']);
    assert.match(refused.stderr, /spec: Forbidden: pod updates may not change fields/);
  });

  it('top pod: shows the usage of pods', async () => {
    const pods = await cluster.kubectl('top', 'pod');
    for (const name of ['web', 'greeter', 'talker'])
      assert.match(pods, new RegExp(`^${name} +\\d+m +\\d+Mi`, 'm'));
  });

  it('explain, api-resources, api-versions and get --raw show what the API serves', async () => {
    assert.match(await cluster.kubectl('explain', 'pod.spec'), /restartPolicy/);
    const resources = await cluster.kubectl('api-resources');
    for (const name of ['pods', 'nodes', 'configmaps', 'events', 'leases', 'certificatesigningrequests'])
      assert.match(resources, new RegExp(`^${name} `, 'm'));
    assert.match(await cluster.kubectl('api-versions'), /^v1$/m);
    for (const path of ['/healthz', '/readyz'])
      assert.equal(await cluster.kubectl('get', '--raw', path), 'ok');
    const raw = JSON.parse(await cluster.kubectl('get', '--raw', '/api/v1/namespaces/default/pods/web'));
    assert.equal(raw.metadata.name, 'web');
    const stats = JSON.parse(
      await cluster.kubectl('get', '--raw', `/api/v1/nodes/${nodeName}/proxy/stats/summary`),
    );
    assert.equal(stats.node.nodeName, nodeName);
    assert.equal(
      await cluster.kubectl('get', '--raw', '/api/v1/namespaces/default/pods/web:80/proxy/'),
      'hello from kubeling\n',
    );
  });

  it('auth can-i and whoami show the permissions and the name of the user', async () => {
    assert.equal(await cluster.kubectl('auth', 'can-i', 'create', 'pods'), 'yes\n');
    const robot = ['--as=system:serviceaccount:elsewhere:robot'];
    const no = await cluster.attempt(['auth', 'can-i', 'create', 'pods', ...robot]);
    assert.match(no.stdout, /^no/);
    assert.match(await cluster.kubectl('auth', 'whoami'), /kubeling-admin/);
  });

  it('apply --server-side: is reported as unsupported and changes nothing', async () => {
    const version = () => cluster.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.resourceVersion}');
    const before = await version();
    const { code, stderr } = await cluster.attempt(['apply', '--server-side', '-f', web]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^error: Server-side apply not available on the server: .*accepted media types include/,
    );
    assert.equal(await version(), before);
  });

  it('debug: adds a container to a running pod', async () => {
    const helper = ['debug', 'web', `--image=${image}`, '--container=helper', '--'];
    const { code, stderr } = await cluster.attempt([...helper, 'sh', '-c', 'echo debugging; sleep 2']);
    assert.equal(code, 0, stderr);
    await cluster.until('its output', ['logs', 'web', '-c', 'helper'], (out) => out === 'debugging\n');
    const shell = cluster.startInTerminal('debug', '-it', 'web', `--image=${image}`, '--', 'sh');
    await shell.prints(/# /);
    shell.child.stdin.write('echo $((6*7)); test -t 0 && echo terminal\n');
    await shell.prints(/42\r\nterminal/);
    shell.child.stdin.end('exit\n');
    assert.equal((await shell.ended).code, 0);
  });

  it('drain and uncordon: pods are evicted from the node, and it is schedulable again', async () => {
    const drained = await cluster.kubectl('drain', nodeName, '--force');
    assert.match(drained, new RegExp(`node/${nodeName} drained`));
    assert.equal(await cluster.kubectl('get', 'pods', '-o', 'name'), '');
    assert.match(await cluster.kubectl('get', 'nodes'), /Ready,SchedulingDisabled/);
    await cluster.kubectl('apply', '-f', 'examples/');
    await cluster.until(
      'the pod to wait',
      ['get', 'pod', 'web', '-o', 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].reason}'],
      (out) => out === 'Unschedulable',
    );
    await cluster.kubectl('uncordon', nodeName);
    for (const name of ['web', 'greeter'])
      await cluster.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s');
  });

  it('delete: waits until the pod has terminated, and with --force does not wait', async () => {
    assert.match(await cluster.kubectl('delete', 'pod', 'greeter'), /pod "greeter" deleted/);
    assert.equal(await cluster.kubectl('get', 'pods', '-o', 'name'), 'pod/web\n');
    assert.match(await cluster.kubectl('delete', 'pod', 'web', '--force'), /pod "web" force deleted/);
    assert.equal(await cluster.kubectl('get', 'pods', '-o', 'name'), '');
    assert.match(await cluster.kubectl('delete', 'configmap', 'greeting', 'colours'), /"colours" deleted/);
    await cluster.kubectl(
      'run',
      'stubborn',
      `--image=${image}`,
      '--',
      'sh',
      '-c',
      'trap "" TERM; sleep 1000',
    );
    await cluster.kubectl('wait', '--for=condition=Ready', 'pod/stubborn', '--timeout=60s');
    await cluster.kubectl('delete', 'pod', 'stubborn', '--force', '--grace-period=0');
    assert.match((await cluster.attempt(['get', 'pod', 'stubborn'])).stderr, /pods "stubborn" not found/);
    await eventually('its container to be removed', async () =>
      (await cluster.node.containersOf('stubborn')).length === 0 ? true : undefined,
    );
    await cluster.kubectl('delete', 'namespace', 'elsewhere');
    assert.match(
      (await cluster.attempt(['get', 'ns', 'elsewhere'])).stderr,
      /namespaces "elsewhere" not found/,
    );
  });

  it('run -it --rm: runs a pod for one command', async () => {
    const out = await cluster.feed(
      'echo asked and answered\n',
      ...['run', 'once', '-i', '--rm', '--restart=Never', `--image=${image}`, '--', 'sh'],
    );
    assert.match(out, /asked and answered/);
    assert.match((await cluster.attempt(['get', 'pod', 'once'])).stderr, /not found/);
  });

  it('the tests ran every kubectl command of the tour', async () => {
    const typed = new Set(cluster.typed.map((line) => line.replace(/\b\d+:80$/, '8080:80')));
    assert.deepEqual(
      (await tourCommands()).filter((line) => !typed.has(line)),
      [],
    );
  });

  it('manifest directory: its objects appear in the API', async () => {
    const name = `static-${nodeName}`;
    await cluster.node.put(
      'static.yaml',
      [
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside, namespace: default}\ndata: {word: here}\n---\n',
        'apiVersion: v1\nkind: Secret\nmetadata: {name: hidden}\nstringData: {word: quiet}\n---\n',
        'apiVersion: v1\nkind: Pod\nmetadata: {name: static}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n',
        `  - name: main\n    image: ${image}\n    command: [sh, -c, "cat /beside/word /hidden/word; echo; sleep 1000"]\n`,
        '    volumeMounts: [{name: beside, mountPath: /beside}, {name: hidden, mountPath: /hidden}]\n  volumes:\n',
        '  - {name: beside, configMap: {name: beside}}\n  - {name: hidden, secret: {secretName: hidden}}\n',
      ].join(''),
    );
    await cluster.until('the mirror pod', ['get', 'pod', name], (out) => out.includes('Running'));
    await cluster.until('what it reads', ['logs', name], (out) => out === 'herequiet\n');
    await cluster.node.put('greeter.yaml', await readFile('examples/greeter.yaml', 'utf8'));
    await cluster.until('the output of the greeter', ['logs', `greeter-${nodeName}`], (out) =>
      out.startsWith('good day, and now: good day\n'),
    );
    await cluster.node.take('greeter.yaml');
    await cluster.node.take('static.yaml');
    await cluster.until(
      'the mirror pod to be deleted',
      ['get', 'pods', '-o', 'name'],
      (out) => !out.includes(name),
    );
  });

  it('manifest directory: its volumes and claims are bound, updated with their file and deleted with it', async () => {
    const volume = (path: string) =>
      [
        'apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  storageClassName: ""\n',
        `  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  hostPath: {path: /tmp}\n  mountOptions: [${path}]\n---\n`,
        'apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: share, namespace: default}\nspec:\n',
        '  storageClassName: ""\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n',
      ].join('');
    await cluster.node.put('volume.yaml', volume('ro'));
    await cluster.until('the claim to be bound', ['get', 'pvc', 'share'], (out) =>
      /share +Bound +disk/.test(out),
    );
    const versions = ['get', 'pv/disk', 'pvc/share', '-o', 'jsonpath={.items[*].metadata.resourceVersion}'];
    const before = await cluster.kubectl(...versions);
    await cluster.node.put(
      'other.yaml',
      'apiVersion: v1\nkind: Secret\nmetadata: {name: aside, namespace: default}\nstringData: {a: b}\n',
    );
    await cluster.until('the next read of the directory', ['get', 'secrets'], (out) => out.includes('aside'));
    assert.equal(await cluster.kubectl(...versions), before, 'reading again changes nothing');
    await cluster.node.put('volume.yaml', volume('rw'));
    const options = ['get', 'pv', 'disk', '-o', 'jsonpath={.spec.mountOptions[0]} {.status.phase}'];
    await cluster.until('the volume to change', options, (out) => out === 'rw Bound');
    await cluster.kubectl('create', 'configmap', 'mine', '--from-literal=a=by-hand');
    await cluster.node.put(
      'other.yaml',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: default}\ndata: {a: by-file}\n',
    );
    await cluster.until('the secret to be deleted', ['get', 'secrets'], (out) => !out.includes('aside'));
    assert.equal(await cluster.kubectl('get', 'cm', 'mine', '-o', 'jsonpath={.data.a}'), 'by-hand');
    await cluster.node.take('volume.yaml');
    await cluster.node.take('other.yaml');
    await cluster.until('all of it to be deleted', ['get', 'pv,pvc'], (out) => out === '');
    assert.match(await cluster.kubectl('get', 'cm'), /^mine /m);
  });

  it('all objects still exist after kubeling was killed', async () => {
    await cluster.kubectl('apply', '-f', web);
    await cluster.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=60s');
    const uid = () => cluster.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.uid}');
    const before = await uid();
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    assert.equal(await uid(), before);
    assert.match(await cluster.kubectl('get', 'pod', 'web'), /web +1\/1 +Running +0 /);
    assert.equal(await cluster.kubectl('exec', 'web', '--', 'echo', 'back'), 'back\n');
  });
});
