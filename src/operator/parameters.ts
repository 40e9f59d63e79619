// What an operation takes, read from its entry in the table (operations.ts): for the command line and for `/api`.

import { z } from "zod";
import { type OperationName, operations } from "./operations.js";

export interface Parameter {
  readonly name: string;
  readonly type: "text" | "number" | "switch" | "list";
  readonly isOptional: boolean;
  readonly choices?: readonly string[];
  /** Absent: the command line does not take it. */
  readonly flags?: string;
  readonly help?: string;
  /** What the command line sends when the option is left out. */
  readonly standard?: string;
}

export const parametersOf = (operation: OperationName): Parameter[] =>
  Object.entries(operations[operation].parameters.shape as Readonly<Record<string, z.ZodType>>).map(
    ([parameter, schema]) => ({
      name: parameter,
      isOptional: schema.isOptional(),
      ...typeOf(schema),
      ...(schema.meta() as object | undefined),
    }),
  );

function typeOf(schema: z.core.$ZodType): Pick<Parameter, "type" | "choices"> {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return typeOf(schema.unwrap());
  if (schema instanceof z.ZodEnum) return { type: "text", choices: schema.options.map(String) };
  if (schema instanceof z.ZodNumber) return { type: "number" };
  if (schema instanceof z.ZodBoolean) return { type: "switch" };
  return { type: schema instanceof z.ZodArray ? "list" : "text" };
}
