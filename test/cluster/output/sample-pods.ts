/**
 * Pods in every state that a table distinguishes: the object to create, and the status it gets
 * afterwards.
 */
export interface Sample {
  readonly object: Sampled;
  readonly status?: object;
  /** The pod is deleted immediately after its creation; a finalizer keeps it. */
  readonly deleted?: true;
}

export type Sampled = { readonly metadata: { readonly name: string } & Record<string, unknown> } & Record<
  string,
  unknown
>;

interface PodWish {
  readonly spec?: object;
  readonly status?: object;
  readonly deleted?: true;
}

export function samplePods(ago: (seconds: number) => string): readonly Sample[] {
  const running = { running: { startedAt: ago(60) } };
  const waiting = (reason: string) => ({ waiting: { reason } });
  const ended = (exitCode: number, reason = '', signal = 0) => ({
    terminated: { exitCode, reason, signal, startedAt: ago(90), finishedAt: ago(70) },
  });
  const seen = (name: string, state: object, more: object = {}) => ({
    name,
    image: 'example.test/a:1',
    imageID: '',
    ready: false,
    restartCount: 0,
    state,
    ...more,
  });
  const restarted = (restartCount: number, seconds: number) => ({
    restartCount,
    lastState: { terminated: { exitCode: 1, startedAt: ago(seconds + 5), finishedAt: ago(seconds) } },
  });
  const one = (state: object, more: object = {}, phase = 'Running') => ({
    status: { phase, containerStatuses: [seen('a', state, more)] },
  });
  const init = (names: readonly string[], sidecars: readonly string[] = []) => ({
    initContainers: names.map((name) => ({
      ...container(name),
      ...(sidecars.includes(name) ? { restartPolicy: 'Always' } : {}),
    })),
  });
  const initStatus = (statuses: readonly object[], more: object = {}, phase = 'Pending') => ({
    phase,
    initContainerStatuses: statuses,
    containerStatuses: [seen('a', waiting('PodInitializing'))],
    ...more,
  });
  const condition = (type: string, status: string, reason = '') => ({ type, status, reason });
  const two = { containers: [container('a'), container('b')] };
  const wishes: Readonly<Record<string, PodWish>> = {
    pending: {},
    gated: {
      spec: { nodeName: undefined, schedulingGates: [{ name: 'example.test/wait' }] },
      status: { nominatedNodeName: 'node-b' },
    },
    evicted: { status: { phase: 'Failed', reason: 'Evicted' } },
    running: {
      status: {
        phase: 'Running',
        podIP: '10.1.2.3',
        podIPs: [{ ip: '10.1.2.3' }, { ip: 'fd00::3' }],
        conditions: [condition('Ready', 'True')],
        containerStatuses: [seen('a', running, { ready: true })],
      },
    },
    'running-unready': one(running),
    restarted: one(running, { ready: true, ...restarted(3, 300) }),
    'restarted-unknown-when': one(running, { ready: true, restartCount: 2 }),
    'image-pull': one(waiting('ImagePullBackOff'), {}, 'Pending'),
    'crash-loop': one(waiting('CrashLoopBackOff'), restarted(7, 4000)),
    'no-reason': one(waiting(''), {}, 'Pending'),
    completed: one(ended(0, 'Completed'), {}, 'Succeeded'),
    failed: one(ended(1, 'Error'), {}, 'Failed'),
    killed: one(ended(137, 'OOMKilled'), {}, 'Failed'),
    'exit-code': one(ended(3), {}, 'Failed'),
    signalled: one(ended(0, '', 9), {}, 'Failed'),
    'one-completed': {
      spec: two,
      status: {
        phase: 'Running',
        conditions: [condition('Ready', 'True')],
        containerStatuses: [seen('a', ended(0, 'Completed')), seen('b', running, { ready: true })],
      },
    },
    'one-completed-unready': {
      spec: two,
      status: {
        phase: 'Running',
        conditions: [condition('Ready', 'False')],
        containerStatuses: [seen('a', ended(0, 'Completed')), seen('b', running, { ready: true })],
      },
    },
    'one-completed-one-failed': {
      spec: two,
      status: {
        phase: 'Failed',
        containerStatuses: [seen('a', ended(0, 'Completed')), seen('b', ended(2, 'Error'))],
      },
    },
    'first-speaks': {
      spec: two,
      status: {
        phase: 'Running',
        containerStatuses: [seen('a', waiting('CrashLoopBackOff')), seen('b', ended(2, 'Error'))],
      },
    },
    'init-first': {
      spec: init(['i', 'j']),
      status: initStatus([seen('i', running), seen('j', waiting('PodInitializing'))]),
    },
    'init-second': {
      spec: init(['i', 'j']),
      status: initStatus([
        seen('i', ended(0, 'Completed'), restarted(1, 7200)),
        seen('j', running, restarted(2, 100)),
      ]),
    },
    'init-failed': {
      spec: init(['i']),
      status: initStatus([seen('i', ended(1, 'Error'), { restartCount: 1 })]),
    },
    'init-exit-code': { spec: init(['i']), status: initStatus([seen('i', ended(4))]) },
    'init-signalled': { spec: init(['i']), status: initStatus([seen('i', ended(5, '', 15))]) },
    'init-crash-loop': {
      spec: init(['i']),
      status: initStatus([seen('i', waiting('CrashLoopBackOff'), restarted(4, 29_000))]),
    },
    'init-done': {
      spec: init(['i']),
      status: {
        phase: 'Running',
        conditions: [condition('Initialized', 'True'), condition('Ready', 'True')],
        initContainerStatuses: [seen('i', ended(0, 'Completed'), restarted(5, 50))],
        containerStatuses: [seen('a', running, { ready: true })],
      },
    },
    'init-again': {
      spec: init(['i']),
      status: {
        phase: 'Running',
        conditions: [condition('Initialized', 'True')],
        initContainerStatuses: [seen('i', running, restarted(5, 50))],
        containerStatuses: [seen('a', running, { ready: true, ...restarted(1, 100_000) })],
      },
    },
    'sidecar-started': {
      spec: init(['s', 'i'], ['s']),
      status: initStatus([seen('s', running, { ready: true, started: true }), seen('i', running)]),
    },
    'sidecar-starting': {
      spec: init(['s', 'i'], ['s']),
      status: initStatus([seen('s', running, { started: false }), seen('i', waiting('PodInitializing'))]),
    },
    'sidecar-running': {
      spec: init(['s'], ['s']),
      status: {
        phase: 'Running',
        conditions: [condition('Initialized', 'True'), condition('Ready', 'True')],
        initContainerStatuses: [seen('s', running, { ready: true, started: true, ...restarted(2, 700_000) })],
        containerStatuses: [seen('a', running, { ready: true, ...restarted(1, 800_000) })],
      },
    },
    'readiness-gates': {
      spec: { readinessGates: [{ conditionType: 'example.test/x' }, { conditionType: 'example.test/y' }] },
      status: {
        phase: 'Running',
        conditions: [condition('example.test/x', 'True')],
        containerStatuses: [seen('a', running, { ready: true })],
      },
    },
    terminating: { ...one(running, { ready: true }), deleted: true },
    'terminating-node-lost': {
      status: { phase: 'Running', reason: 'NodeLost', containerStatuses: [seen('a', running)] },
      deleted: true,
    },
    'terminating-completed': { ...one(ended(0, 'Completed'), {}, 'Succeeded'), deleted: true },
    'unknown-phase': { status: { phase: 'Unknown' } },
  };
  return Object.entries(wishes).map(([name, wish]) => sampleOf(name, wish));
}

function container(name: string): { readonly name: string; readonly image: string } {
  return { name, image: 'example.test/a:1' };
}

function sampleOf(name: string, { spec, status, deleted }: PodWish): Sample {
  const metadata = { name, finalizers: deleted === undefined ? [] : ['example.test/keep'] };
  const whole = { nodeName: 'node-a', containers: [container('a')], ...spec };
  return {
    object: { apiVersion: 'v1', kind: 'Pod', metadata, spec: whole },
    ...(status === undefined ? {} : { status }),
    ...(deleted === undefined ? {} : { deleted }),
  };
}
