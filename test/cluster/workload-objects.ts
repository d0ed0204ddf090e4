import { container, podSpec } from './cluster-pods.ts';

export const jobPath = (name: string) => `/apis/batch/v1/namespaces/default/jobs/${name}`;

export const appPath = (plural: string, name: string) => `/apis/apps/v1/namespaces/default/${plural}/${name}`;

/** Of pods that are known by the label `app`. */
export function template(name: string, spec: object = podSpec([container('main')])): object {
  return { metadata: { labels: { app: name } }, spec };
}

/** Of the group apps: a Deployment, a DaemonSet or a StatefulSet. */
export function app(kind: string, name: string, fields: object = {}): object {
  const metadata = { name, namespace: 'default' };
  const selector = { matchLabels: { app: name } };
  const spec = { selector, template: template(name), ...fields };
  return { apiVersion: 'apps/v1', kind, metadata, spec };
}

/** Its container is a command of a shell, and is never restarted in its pod unless the pod's fields say so. */
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

/** At least so many of the pods with this label are to be available. */
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
