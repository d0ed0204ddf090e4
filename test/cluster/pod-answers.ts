import {
  type Json,
  type RecordedAnswer,
  type RecordedChange,
  type RecordedPod,
  readRecording,
  recordable,
  surroundings,
  writeRecording,
} from '../testdata/pods/recorded.ts';
import { ControlPlane } from './control-plane.ts';
import { clusterAssets } from './programs.ts';

const pods = '/api/v1/namespaces/default/pods';

/** Sends the recorded pods to a real API server and returns its responses. */
export class PodAnswers {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async setUp(): Promise<void> {
    for (const { path, object } of surroundings) await this.#plane.create(path, object);
  }

  /** Creates the pod as a dry run, so nothing is stored. */
  async toCreate({ pod }: Pick<RecordedPod, 'pod'>): Promise<RecordedAnswer> {
    return await this.#ask(`${pods}?dryRun=All`, { method: 'POST', body: pod });
  }

  /** Creates the pod, sends the change, and deletes the pod again. */
  async toChange({ pod, request }: Pick<RecordedChange, 'pod' | 'request'>): Promise<RecordedAnswer> {
    const { name } = pod['metadata'] as { readonly name: string };
    const { method, subresource, contentType, body } = request;
    await this.#plane.create(pods, pod);
    try {
      const part = subresource === '' ? '' : `/${subresource}`;
      return await this.#ask(`${pods}/${name}${part}`, { method, body, contentType });
    } finally {
      await this.#plane.send(`${pods}/${name}?gracePeriodSeconds=0`, { method: 'DELETE' });
    }
  }

  async #ask(path: string, sent: Parameters<ControlPlane['send']>[1]): Promise<RecordedAnswer> {
    const { status, body } = await this.#plane.send(path, sent);
    return recordable(status, JSON.parse(body) as Json);
  }
}

/** Sends the pods to a real API server again and records the responses. */
export async function recordPodAnswers(): Promise<void> {
  await using plane = await ControlPlane.open(clusterAssets());
  const responses = new PodAnswers(plane);
  await responses.setUp();
  for (const name of ['refused', 'accepted'] as const) {
    const reported = [];
    for (const one of readRecording(name)) reported.push({ ...one, answer: await responses.toCreate(one) });
    writeRecording(name, reported);
  }
  const changes = [];
  for (const one of readRecording('changes')) changes.push({ ...one, answer: await responses.toChange(one) });
  writeRecording('changes', changes);
}
