import type { Image } from '../../cri/index.ts';
import type { Container, EphemeralContainer } from '../../kinds/index.ts';
import { describeError } from '../../lib/index.ts';
import {
  containerFieldPath,
  type ObservedPod,
  type Pod,
  type PodEvent,
  type PodJournal,
} from '../../pods/index.ts';
import type { ReadySandbox } from '../sandbox/start-sandbox.ts';
import type { ActionFailure } from '../sync-result.ts';

/** One container of a pod that is to run. */
export interface ContainerStart {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly observed: ObservedPod;
  readonly sandbox: ReadySandbox;
  /** Images this sync has looked at already. */
  readonly seenImages: Map<string, Image>;
  /** Containers this sync has stopped: the observation still has them running. */
  readonly stopped: ReadonlySet<string>;
  /** Called when it is made and about to be started. */
  readonly made?: (() => void) | undefined;
}

/** Ends a start with the reason its status shows. */
export class StartFailure extends Error {
  readonly failure: ActionFailure;

  constructor(failure: ActionFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

interface StartEvent {
  readonly type: PodEvent['type'];
  readonly reason: string;
  readonly text: string;
  /** Ids differ from try to try; the container's name in place of this one keeps events of one cause alike. */
  readonly containerId?: string | undefined;
}

/** What is told of the starts of containers. */
export class StartStory {
  readonly #journal: PodJournal;

  constructor(journal: PodJournal) {
    this.#journal = journal;
  }

  event({ pod, container: { name } }: ContainerStart, event: StartEvent): void {
    const { type, reason, text, containerId = '' } = event;
    const message = containerId === '' ? text : text.replaceAll(containerId, name);
    this.#journal.event(pod, { type, reason, message, fieldPath: containerFieldPath(pod, name) });
  }

  step(
    { pod, container }: ContainerStart,
    outcome: 'done' | 'failed' | 'waiting',
    message: string,
    ms?: number,
  ): void {
    const { name } = container;
    this.#journal.step(pod.metadata.uid, { stage: 'container', outcome, message, container: name, ms });
  }

  /** Tells of the failure and answers it, to be thrown. */
  failed(start: ContainerStart, reason: string, error: unknown, containerId = ''): StartFailure {
    const message = describeError(error);
    this.event(start, { type: 'Warning', reason: 'Failed', text: `Error: ${message}`, containerId });
    return new StartFailure({ reason, message });
  }
}
