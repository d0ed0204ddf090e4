import {
  type Json,
  merged,
  pathOf,
  type RecordedAnswer,
  type RecordedCall,
  readCalls,
  recordable,
  writeCalls,
} from '../testdata/kinds/recorded.ts';
import { ControlPlane } from './control-plane.ts';
import { clusterAssets } from './programs.ts';

/** Sends a recorded request to a real API server and returns its response. */
export async function realAnswer(plane: ControlPlane, call: RecordedCall): Promise<RecordedAnswer> {
  const { part: _, ...whole } = call;
  const before = call.method === 'PUT' ? await plane.get<Json>(pathOf(whole)) : undefined;
  const body = merged(before ?? {}, call.body);
  const { status, body: text } = await plane.send(pathOf(call), { method: call.method, body });
  return recordable(status, JSON.parse(text) as Json);
}

/** Sends the requests to a real API server again and records the responses. */
export async function recordKindAnswers(): Promise<void> {
  await using plane = await ControlPlane.open(clusterAssets());
  const reported = [];
  for (const call of readCalls()) reported.push({ ...call, answer: await realAnswer(plane, call) });
  writeCalls(reported);
}
