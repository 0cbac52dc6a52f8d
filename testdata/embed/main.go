// Command embed is a program of its own that runs a program of a model, with a
// tool of its own. It has no wiring for the child process that the program
// runs in.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/tools"
)

type in struct {
	City string `json:"city"`
}

type out struct {
	Degrees int `json:"degrees"`
}

func main() {
	ctx := context.Background()
	session, err := dsh.Open(ctx, &dsh.Options{Temporary: true})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	tools.Add(session.Registry, tools.Tool{Name: "weather", Description: "Says how warm it is.", Effect: tools.NoEffect},
		func(_ context.Context, _ *tools.Call, in in) (out, error) { return out{Degrees: len(in.City)}, nil })

	report, err := session.Run(ctx, `
		const cities = ["Oslo", "Lisbon"];
		const found = await Promise.all(cities.map((city) => tools.weather({ city })));
		return found.map(({ degrees }, i) => cities[i] + " " + degrees);
	`, nil)
	if err != nil {
		log.Fatal(err)
	}
	if report.Failure != nil {
		fmt.Fprintln(os.Stderr, report.Failure)
		os.Exit(1)
	}
	fmt.Println(string(report.Value), report.Confinement.Isolation, report.Confinement.Enforcement)
}
