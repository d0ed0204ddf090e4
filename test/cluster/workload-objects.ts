import { container, podSpec } from './cluster-pods.ts';

export const jobPath = (name: string) => `/apis/batch/v1/namespaces/default/jobs/${name}`;

export const appPath = (plural: string, name: string) => `/apis/apps/v1/namespaces/default/${plural}/${name}`;

/** A pod template with the label `app`. */
export function template(name: string, spec: object = podSpec([container('main')])): object {
  return { metadata: { labels: { app: name } }, spec };
}

/** Builds an object of the group apps: a Deployment, a DaemonSet or a StatefulSet. */
export function app(kind: string, name: string, fields: object = {}): object {
  const metadata = { name, namespace: 'default' };
  const selector = { matchLabels: { app: name } };
  const spec = { selector, template: template(name), ...fields };
  return { apiVersion: 'apps/v1', kind, metadata, spec };
}

/**
 * Builds a pod spec of a Job whose container runs a shell command and is not restarted in its pod
 * by default.
 */
export function jobSpec(name: string, command: string, fields: object = {}, ofPod: object = {}): object {
  const main = container('main', { command: ['sh', '-c', command] });
  return { template: template(name, podSpec([main], { restartPolicy: 'Never', ...ofPod })), ...fields };
}

export function job(name: string, spec: object): object {
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: 'default' }, spec };
}

export function cronJob(name: string, schedule: string, ofJob: object): object {
  const metadata = { name, namespace: 'default' };
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata,
    spec: { schedule, jobTemplate: { spec: ofJob } },
  };
}

/** Builds a PodDisruptionBudget for the pods with this label. */
export function disruptionBudget(name: string, minAvailable: number): object {
  const metadata = { name, namespace: 'default' };
  const selector = { matchLabels: { app: name } };
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata,
    spec: { minAvailable, selector },
  };
}
